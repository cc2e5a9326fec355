-- Claim temporary runs whose time is over: their time moves by the lease, so that another process
-- takes them if this one dies. The erasure deletes the row.
UPDATE private_runs SET expires_at = now() + CAST(:lease AS interval)
WHERE (project_id, run_id) IN (
    SELECT project_id, run_id FROM private_runs
    WHERE expires_at <= now()
    ORDER BY expires_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
RETURNING project_id, run_id
