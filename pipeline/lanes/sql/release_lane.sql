-- A worker that stops, or lost the ledger, releases the lane at once, before its lease ends. This
-- is no crash, so the attempt does not count. The worker's last statement may have committed
-- without an answer: then the lane is at the next stage, which has had no attempt yet.
UPDATE lanes SET
    state = 'QUEUED',
    fence = fence + 1,
    due_at = now() + CAST(:grace AS interval),
    owner = NULL,
    attempts = CASE WHEN stage = CAST(:stage AS text) THEN least(attempts, CAST(:attempts AS smallint))
                    ELSE 0 END
WHERE id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint)
  AND (state = 'QUEUED' OR (state = 'RUNNING' AND owner = CAST(:owner AS uuid)))
RETURNING fence, stage
