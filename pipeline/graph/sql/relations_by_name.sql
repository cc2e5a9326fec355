-- Current relations of a scope with an entity of one of these names, newest first.
WITH named AS MATERIALIZED (
    SELECT DISTINCT coalesce(root_id, id) AS root FROM entities
    WHERE lane_id = CAST(:lane_id AS uuid)
      AND coalesce(plain_name, name_key) = ANY (CAST(:names AS text[]))
), member AS MATERIALIZED (
    SELECT root AS id FROM named
    UNION SELECT e.id FROM named n JOIN entities e ON e.root_id = n.root
), near AS (
    SELECT r.id FROM member m JOIN relations r ON r.source_id = m.id WHERE r.expired_at IS NULL
    UNION
    SELECT r.id FROM member m JOIN relations r ON r.destination_id = m.id
    WHERE r.expired_at IS NULL
)
SELECT r.id AS relation_id, s.name AS source, r.relation, d.name AS destination
FROM near JOIN relations r USING (id)
JOIN entities s ON s.id = r.source_id
JOIN entities d ON d.id = r.destination_id
WHERE r.lane_id = CAST(:lane_id AS uuid)
  AND (CAST(:until AS timestamptz) IS NULL OR r.valid_from <= CAST(:until AS timestamptz))
ORDER BY r.valid_from DESC, r.id
LIMIT CAST(:limit AS integer)
