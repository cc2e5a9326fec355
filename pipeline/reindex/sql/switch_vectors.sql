-- Copy the versions and vectors of the new index to memories, or turns. Rows with no new vector
-- that were not stale in the old index need no write.
UPDATE {table} SET
    projected_version = r.version,
    embedding = coalesce(r.embedding, {table}.embedding),
    embedder = CASE WHEN r.embedding IS NULL THEN {table}.embedder ELSE i.embedder END
FROM rebuilt r, vector_indexes i
WHERE i.state = 'WHOLE'
  AND r.memory_id = {table}.id AND r.version = {table}.version
  AND (r.embedding IS NOT NULL OR {table}.projected_version <> {table}.version)
