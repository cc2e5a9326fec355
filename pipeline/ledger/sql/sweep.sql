-- Every lane whose time is up, whatever the reason: a worker died (RUNNING), a hint was lost
-- (QUEUED), a wait is over (WAITING). The new fence kills whatever was under way.
WITH due AS (
    SELECT id, state FROM lanes
    WHERE state <> 'IDLE' AND due_at < now()
    ORDER BY due_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
UPDATE lanes SET
    state = 'QUEUED', fence = lanes.fence + 1, owner = NULL,
    due_at = now() + CAST(:grace AS interval)
FROM due WHERE lanes.id = due.id
RETURNING lanes.id AS lane_id, lanes.fence, lanes.stage, due.state AS was
