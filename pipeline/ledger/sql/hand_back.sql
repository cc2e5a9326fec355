-- A worker that has to stop gives up a lane it has not finished with: at once, for others need not
-- wait for its lease, and the attempt is given back. Its last statement may have committed unseen;
-- then the lane is queued for the next stage, and that is what is handed on.
UPDATE lanes SET
    state = 'QUEUED',
    fence = fence + 1,
    due_at = now() + CAST(:grace AS interval),
    owner = NULL,
    attempts = greatest(attempts - 1, 0)
WHERE id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint)
  AND state IN ('RUNNING', 'QUEUED')
RETURNING fence, stage
