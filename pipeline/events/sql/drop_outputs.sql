-- Delete old stage outputs of ended events; the costs stay, because receipts show them. Rows of a
-- batch that was split are deleted as a whole, because no event refers to them. A limited number of
-- rows per call; rows that another sweeper has locked are skipped.
WITH old AS MATERIALIZED (
    SELECT r.batch_id, r.stage,
           EXISTS (SELECT FROM events e WHERE e.batch_id = r.batch_id) AS in_use
    FROM stage_runs r
    WHERE r.output IS NOT NULL AND r.finished_at < now() - CAST(:age AS interval)
      AND NOT EXISTS (
          SELECT FROM events e
          WHERE e.batch_id = r.batch_id AND e.status IN ('PENDING', 'RUNNING'))
    ORDER BY r.finished_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
), taken_apart AS (
    DELETE FROM stage_runs USING old
    WHERE stage_runs.batch_id = old.batch_id AND stage_runs.stage = old.stage AND NOT old.in_use
), failed AS (
    DELETE FROM failed_runs WHERE batch_id IN (SELECT batch_id FROM old WHERE NOT in_use)
), sources AS (
    DELETE FROM answer_sources WHERE batch_id IN (SELECT batch_id FROM old)
)
UPDATE stage_runs SET output = NULL
FROM old WHERE stage_runs.batch_id = old.batch_id AND stage_runs.stage = old.stage AND old.in_use
