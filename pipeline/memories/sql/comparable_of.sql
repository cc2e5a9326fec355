-- The active memories of a large scope that are worth comparing with facts, at most :limit: those
-- with the ids, which may be of other scopes, and those with one of the slots.
WITH wanted AS (
    SELECT id, ordinality AS rank
    FROM unnest(CAST(:ids AS uuid[])) WITH ORDINALITY AS near (id, ordinality)
    UNION ALL
    SELECT of_slot.id, 0
    FROM unnest(CAST(:slots AS text[])) AS s (slot)
    CROSS JOIN LATERAL (
        SELECT id FROM memories
        WHERE lane_id = CAST(:lane_id AS uuid) AND memories.slot = s.slot AND state = 'ACTIVE'
        LIMIT CAST(:limit AS integer)
    ) of_slot
), first AS (
    SELECT id, min(rank) AS rank FROM wanted GROUP BY id ORDER BY rank, id
    LIMIT CAST(:limit AS integer)
)
SELECT m.id, array_to_string(m.terms, ' ') AS terms, m.slot,
       CASE m.embedder WHEN CAST(:embedder AS text) THEN m.embedding END AS embedding
FROM first
CROSS JOIN LATERAL (SELECT * FROM memories WHERE memories.id = first.id OFFSET 0) m
WHERE m.lane_id = CAST(:lane_id AS uuid) AND m.state = 'ACTIVE' AND m.memory_type <> 'procedural'
ORDER BY first.rank, m.id
