-- Claim a due summary at the start of the work: a task that was published again, because the first
-- one waited long in the broker, makes no second call. No row: another worker has it, or it is done.
UPDATE summary_states SET
    claimed_until = now() + CAST(:lease AS interval),
    due_at = greatest(due_at, now() + CAST(:lease AS interval))
WHERE lane_id = CAST(:lane_id AS uuid) AND due_at IS NOT NULL
  AND coalesce(claimed_until, '-infinity') <= now()
RETURNING lane_id
