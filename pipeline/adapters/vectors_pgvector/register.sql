-- Register the collection unless it exists, and return the embedder of its vectors.
INSERT INTO memlane_vectors.collections (name, dimensions, embedder)
VALUES (:name, :dimensions, :embedder)
ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING embedder
