-- Record that the index under construction has these versions. Without a vector, it has the
-- memory's.
INSERT INTO rebuilt (memory_id, version, embedding)
SELECT * FROM unnest(
    CAST(:ids AS uuid[]), CAST(:versions AS integer[]), CAST(:vectors AS bytea[])
)
ON CONFLICT (memory_id) DO UPDATE SET version = excluded.version, embedding = excluded.embedding
