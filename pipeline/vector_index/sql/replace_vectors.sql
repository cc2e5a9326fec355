-- Replace vectors by those of another model. A row whose text has changed since it was read keeps
-- its newer vector. Lock order: pipeline/ledger/locks.py.
WITH locked AS MATERIALIZED (
    SELECT id FROM {table} WHERE id = ANY (CAST(:ids AS uuid[])) ORDER BY id FOR UPDATE
)
UPDATE {table} SET embedding = f.vector, embedder = :embedder
FROM locked JOIN unnest(
    CAST(:ids AS uuid[]), CAST(:versions AS integer[]), CAST(:vectors AS bytea[])
) AS f (id, version, vector) USING (id)
WHERE {table}.id = locked.id AND {table}.version = f.version
