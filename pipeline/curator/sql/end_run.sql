-- End a run and delete the answers of its steps. No row: another worker has the run.
WITH ended AS (
    UPDATE curator_runs SET
        state = CAST(:state AS text), code = CAST(:code AS text), note = CAST(:note AS text),
        due_at = NULL, completed_at = now()
    WHERE {claimed.sql}
    RETURNING id
), forgotten AS (
    DELETE FROM curator_steps USING ended WHERE curator_steps.run_id = ended.id
)
SELECT id FROM ended
