-- Suffix of the index that is the collection's graph. No row: it has none, or is missing.
SELECT substr(name, length(:index) + 2) AS graph
FROM unnest(ARRAY[CAST(:index AS text) || '_near', CAST(:index AS text) || '_signs']) AS name
JOIN pg_index ON indexrelid = to_regclass('memlane_vectors.' || name) AND indisvalid
LIMIT 1
