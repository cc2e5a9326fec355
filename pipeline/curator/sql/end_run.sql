-- End a run and delete the answers of its steps. No row: another worker has the run.
-- Also delete the oldest runs of its scope: those beyond the newest :kept, up to 100, unless a
-- suggestion names them. With OFFSET, the index by lane is read as far as that, and no further.
WITH ended AS (
    UPDATE curator_runs SET
        state = CAST(:state AS text), code = CAST(:code AS text), note = CAST(:note AS text),
        due_at = NULL, completed_at = now()
    WHERE {claimed.sql}
    RETURNING id, lane_id
), forgotten AS (
    DELETE FROM curator_steps USING ended WHERE curator_steps.run_id = ended.id
), oldest AS MATERIALIZED (
    SELECT r.id FROM ended, LATERAL (
        SELECT id FROM curator_runs
        WHERE curator_runs.lane_id = ended.lane_id
        ORDER BY curator_runs.created_at DESC
        OFFSET CAST(:kept AS integer) LIMIT 100
    ) r
), dropped AS (
    DELETE FROM curator_runs USING oldest
    WHERE curator_runs.id = oldest.id AND curator_runs.completed_at IS NOT NULL
      AND NOT EXISTS (SELECT FROM suggestions s WHERE s.run_id = curator_runs.id)
)
SELECT id FROM ended
