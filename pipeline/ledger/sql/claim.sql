-- The compare-and-set that makes an activation: only the holder of the newest fence gets through,
-- once. The attempt is counted before the work, so a crash cannot hide it.
UPDATE lanes SET
    state = 'RUNNING',
    fence = fence + 1,
    owner = CAST(:owner AS uuid),
    due_at = now() + CAST(:lease AS interval),
    attempts = attempts + 1
WHERE id = CAST(:lane_id AS uuid)
  AND fence = CAST(:fence AS bigint)
  AND stage = CAST(:stage AS text)
  AND state = 'QUEUED'
RETURNING fence, project_id, user_id, agent_id, app_id, run_id, accepted_seq, settled_seq,
          batch_id, attempts, waits, width
