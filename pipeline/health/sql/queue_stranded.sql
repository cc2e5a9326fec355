-- Queue idle lanes with open events. The sweeper sends their hints; the fence is raised, so that a
-- late worker of an earlier activation commits nothing.
UPDATE lanes SET state = 'QUEUED', fence = lanes.fence + 1, owner = NULL, due_at = now()
FROM (
    SELECT l.id FROM lanes l
    WHERE l.state = 'IDLE' AND EXISTS (
        SELECT FROM events e WHERE e.lane_id = l.id AND e.completed_at IS NULL)
    ORDER BY l.id
    FOR UPDATE OF l SKIP LOCKED
) stranded
WHERE lanes.id = stranded.id
