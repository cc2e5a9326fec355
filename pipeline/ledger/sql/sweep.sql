-- Every lane whose time is up, whatever the reason: a worker died (RUNNING), a wait is over
-- (WAITING), a hint may be lost (QUEUED; with patience for those that stand in a long queue).
-- Only a dead worker's fence is raised: a hint that is merely late stays good, and its double does
-- no harm. Raising it then would void every hint of a backlog faster than workers reach them.
WITH due AS (
    SELECT id, state FROM lanes
    WHERE state <> 'IDLE'
      -- A stage of a later release is for that release's sweepers.
      AND stage = ANY (CAST(:stages AS text[]))
      AND due_at < now() - CASE WHEN state = 'QUEUED' AND project_id = ANY (CAST(:patient AS uuid[]))
                                THEN CAST(:patience AS interval) ELSE interval '0' END
    ORDER BY due_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
UPDATE lanes SET
    state = 'QUEUED',
    fence = lanes.fence + CASE due.state WHEN 'RUNNING' THEN 1 ELSE 0 END,
    owner = NULL,
    due_at = now() + CAST(:grace AS interval)
FROM due WHERE lanes.id = due.id
RETURNING lanes.id AS lane_id, lanes.fence, lanes.stage, lanes.project_id, due.state AS was
