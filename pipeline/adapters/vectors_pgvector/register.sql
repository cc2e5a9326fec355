-- Whose vectors the collection holds: ours, unless it was there before.
INSERT INTO memlane_vectors.collections (name, dimensions, embedder)
VALUES (:name, :dimensions, :embedder)
ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING embedder
