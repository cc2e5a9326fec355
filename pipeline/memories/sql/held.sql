-- What a scope holds, as vectors: to be compared whole where it is not too much.
SELECT id, embedding
FROM memories
WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE' AND embedder = CAST(:embedder AS text)
LIMIT CAST(:limit AS integer)
