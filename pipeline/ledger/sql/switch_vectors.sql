-- What the new index holds as it is becomes what the memories hold. Where no vector was made anew
-- and the old index owed nothing, there is nothing to write.
UPDATE memories SET
    projected_version = r.version,
    embedding = coalesce(r.embedding, memories.embedding),
    embedder = CASE WHEN r.embedding IS NULL THEN memories.embedder ELSE i.embedder END
FROM rebuilt r, vector_indexes i
WHERE i.state = 'WHOLE'
  AND r.memory_id = memories.id AND r.version = memories.version
  AND (r.embedding IS NOT NULL OR memories.projected_version <> memories.version)
