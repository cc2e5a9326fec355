-- Delete the digests of ended private runs after their retention time.
WITH old AS MATERIALIZED (
    SELECT project_id, digest FROM private_runs
    WHERE ended_at < now() - CAST(:age AS interval)
    ORDER BY ended_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM private_runs USING old
WHERE private_runs.project_id = old.project_id AND private_runs.digest = old.digest
