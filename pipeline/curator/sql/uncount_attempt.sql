-- A live worker lost this run in an outage of the ledger: take back its counted attempt, because it
-- was no crash.
UPDATE curator_runs SET attempts = attempts - 1
WHERE id = CAST(:run_id AS uuid) AND fence > CAST(:fence AS bigint)
  AND completed_at IS NULL AND attempts > 0
