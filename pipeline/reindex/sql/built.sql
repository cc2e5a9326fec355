-- The index under construction holds these versions now; no vector means the memory's own.
INSERT INTO rebuilt (memory_id, version, embedding)
SELECT * FROM unnest(
    CAST(:ids AS uuid[]), CAST(:versions AS integer[]), CAST(:vectors AS bytea[])
)
ON CONFLICT (memory_id) DO UPDATE SET version = excluded.version, embedding = excluded.embedding
