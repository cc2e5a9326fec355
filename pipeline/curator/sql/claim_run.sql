-- Claim a run; its fence must be that of the hint. No row for a stale hint.
UPDATE curator_runs SET
    state = 'RUNNING', fence = fence + 1, attempts = attempts + 1,
    due_at = now() + CAST(:lease AS interval)
WHERE id = CAST(:run_id AS uuid) AND fence = CAST(:fence AS bigint) AND state = 'QUEUED'
RETURNING fence
