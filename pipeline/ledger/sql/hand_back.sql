-- A worker gives up a lane it has not finished with, so that nobody waits for its lease: because it
-- has to stop, which is no fault of the event (its attempt is given back), or because it lost the
-- ledger in the middle, which might be. Its last statement may have committed unseen; then the lane
-- is queued for the next stage, and that is what is handed on.
UPDATE lanes SET
    state = 'QUEUED',
    fence = fence + 1,
    due_at = now() + CAST(:grace AS interval),
    owner = NULL,
    attempts = greatest(attempts - CAST(:given_back AS smallint), 0)
WHERE id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint)
  AND state IN ('RUNNING', 'QUEUED')
RETURNING fence, stage
