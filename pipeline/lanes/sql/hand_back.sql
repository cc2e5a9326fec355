-- A worker gives up a lane it has not finished with, so that nobody waits for its lease: it has to
-- stop, or it lost the ledger in the middle. Neither is a crash, so its attempt does not count. Its
-- last statement may have committed unseen; then the lane is queued for the next stage, and that is
-- what is handed on.
UPDATE lanes SET
    state = 'QUEUED',
    fence = fence + 1,
    due_at = now() + CAST(:grace AS interval),
    owner = NULL,
    attempts = least(attempts, CAST(:attempts AS smallint))
WHERE id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint)
  AND (state = 'QUEUED' OR (state = 'RUNNING' AND owner = CAST(:owner AS uuid)))
RETURNING fence, stage
