-- Park the lane until an outage or a rate limit is over. The attempt is given back: waiting for
-- somebody else is no fault of the event.
UPDATE lanes SET
    state = 'WAITING',
    due_at = now() + CAST(:delay AS interval),
    owner = NULL,
    attempts = attempts - 1,
    waits = waits + 1,
    wait_code = CAST(:code AS text)
WHERE id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint) AND state = 'RUNNING'
RETURNING fence
