-- The step whose answer is saved and whose suggestions are not stored yet.
SELECT ordinal, shown, answer FROM curator_steps
WHERE run_id = CAST(:run_id AS uuid) AND acted_at IS NULL
