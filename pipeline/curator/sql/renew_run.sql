-- Heartbeat: renew the lease of a claimed run. No row: another worker has the run.
UPDATE curator_runs SET due_at = now() + CAST(:lease AS interval)
WHERE {claimed.sql}
RETURNING fence
