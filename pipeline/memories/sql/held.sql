-- Packed vectors of a scope's active memories, at most :limit, for an exact comparison.
SELECT id, embedding
FROM memories
WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE' AND embedder = CAST(:embedder AS text)
LIMIT CAST(:limit AS integer)
