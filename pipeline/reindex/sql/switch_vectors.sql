-- What the new index holds as it is becomes what memories, or turns, hold. Where no vector was made anew
-- and the old index owed nothing, there is nothing to write.
UPDATE {table} SET
    projected_version = r.version,
    embedding = coalesce(r.embedding, {table}.embedding),
    embedder = CASE WHEN r.embedding IS NULL THEN {table}.embedder ELSE i.embedder END
FROM rebuilt r, vector_indexes i
WHERE i.state = 'WHOLE'
  AND r.memory_id = {table}.id AND r.version = {table}.version
  AND (r.embedding IS NOT NULL OR {table}.projected_version <> {table}.version)
