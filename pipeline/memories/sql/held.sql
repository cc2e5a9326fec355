-- Packed vectors of a scope's active memories, at most :limit, for an exact comparison. Summaries of
-- procedures are compared with nothing.
SELECT id, embedding
FROM memories
WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE' AND embedder = CAST(:embedder AS text)
  AND memory_type <> 'procedural'
LIMIT CAST(:limit AS integer)
