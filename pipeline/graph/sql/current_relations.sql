-- Relations of nodes, which are members of these roots, and relations that these memories state: the
-- current ones, and those that ended after `since`. `protected`: no model changes the memory that
-- states it. `said_at`: the last time that this memory was stated, if it is active. `text`: how its
-- text begins. `disputed`: the memory is or was in a conflict.
WITH member AS MATERIALIZED (
    SELECT unnest(CAST(:roots AS uuid[])) AS id
    UNION SELECT e.id FROM entities e WHERE e.root_id = ANY (CAST(:roots AS uuid[]))
), near AS (
    SELECT r.id FROM member m JOIN relations r ON r.source_id = m.id
    WHERE r.expired_at IS NULL OR r.valid_to > CAST(:since AS timestamptz)
    UNION
    SELECT r.id FROM member m JOIN relations r ON r.destination_id = m.id
    WHERE r.expired_at IS NULL OR r.valid_to > CAST(:since AS timestamptz)
    UNION
    SELECT r.id FROM relations r
    WHERE r.memory_id = ANY (CAST(:memory_ids AS uuid[])) AND r.expired_at IS NULL
)
SELECT r.id, r.source_id, s.name AS source, r.relation, r.destination_id, d.name AS destination,
       r.valid_from, s.root_id AS source_root, d.root_id AS destination_root,
       coalesce(m.pinned OR m.immutable OR m.edited_at IS NOT NULL, false) AS protected,
       r.event_id, r.memory_id, m.slot,
       coalesce(m.said_at, r.valid_from) AS said_at, coalesce(left(m.text, 400), '') AS text,
       EXISTS (
           SELECT FROM conflict_members c WHERE c.memory_id = r.memory_id AND c.lane_id = r.lane_id
       ) AS disputed,
       CASE WHEN r.expired_at IS NOT NULL THEN r.valid_to END AS valid_to
FROM near JOIN relations r USING (id)
JOIN entities s ON s.id = r.source_id
JOIN entities d ON d.id = r.destination_id
LEFT JOIN memories m ON m.id = r.memory_id AND m.lane_id = r.lane_id AND m.state = 'ACTIVE'
WHERE r.lane_id = CAST(:lane_id AS uuid)
ORDER BY r.expired_at IS NOT NULL, r.valid_from DESC, r.id
LIMIT CAST(:limit AS integer)
