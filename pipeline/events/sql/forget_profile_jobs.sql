-- Delete jobs after the lifetime of idempotency keys.
WITH old AS MATERIALIZED (
    SELECT id FROM profile_jobs
    WHERE created_at < now() - CAST(:age AS interval)
    ORDER BY created_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM profile_jobs USING old WHERE profile_jobs.id = old.id
