-- Heartbeat of one worker: every lane it still works on, in one statement.
UPDATE lanes SET due_at = now() + CAST(:lease AS interval)
FROM unnest(CAST(:lane_ids AS uuid[]), CAST(:fences AS bigint[])) AS held (lane_id, fence)
WHERE lanes.id = held.lane_id AND lanes.fence = held.fence AND lanes.state = 'RUNNING'
