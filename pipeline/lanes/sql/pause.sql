-- Pause the lane until an outage or a rate limit is over. The attempt does not count, because the
-- event did not cause the outage.
UPDATE lanes SET
    state = 'WAITING',
    due_at = now() + CAST(:delay AS interval),
    owner = NULL,
    attempts = least(attempts, CAST(:attempts AS smallint)),
    waits = least(waits + 1, 1000),
    wait_code = CAST(:code AS text),
    wait_cause = CAST(:cause AS text)
WHERE {fence.sql}
  AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
RETURNING fence
