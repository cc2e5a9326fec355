-- The active memories of a scope, at most :limit, to compare facts with; no summaries of procedures. A vector of another
-- embedder is left out: its memory is compared by words and slot alone.
SELECT id, array_to_string(terms, ' ') AS terms, slot,
       CASE embedder WHEN CAST(:embedder AS text) THEN embedding END AS embedding
FROM memories
WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE' AND memory_type <> 'procedural'
LIMIT CAST(:limit AS integer)
