SELECT dimensions, embedder, (SELECT count(*) FROM {table}) AS records
FROM memlane_vectors.collections
WHERE name = :name
