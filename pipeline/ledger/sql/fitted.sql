-- The same texts in another model's vectors. A text that has changed meanwhile has a newer one.
UPDATE memories SET embedding = f.vector, embedder = :embedder
FROM unnest(
    CAST(:ids AS uuid[]), CAST(:versions AS integer[]), CAST(:vectors AS bytea[])
) AS f (id, version, vector)
WHERE memories.id = f.id AND memories.version = f.version
