-- Write the roots of buckets.
INSERT INTO seal_buckets (project_id, bucket, lanes, counter, key_id, root)
SELECT CAST(:project_id AS uuid), t.bucket, t.lanes, t.counter, CAST(:key_id AS text), t.root
FROM unnest(CAST(:buckets AS smallint[]), CAST(:lanes AS bigint[]), CAST(:counters AS bigint[]),
            CAST(:roots AS bytea[])) AS t (bucket, lanes, counter, root)
ON CONFLICT (project_id, bucket) DO UPDATE SET
    lanes = excluded.lanes, counter = excluded.counter, key_id = excluded.key_id, root = excluded.root
