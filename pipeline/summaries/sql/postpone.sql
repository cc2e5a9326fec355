-- The previous version stays. Try again after the delay; without one, there is nothing to do.
-- Nothing changes if the scope was erased since the task was read (`epoch`).
WITH lane AS MATERIALIZED (
    SELECT id FROM lanes
    WHERE id = CAST(:lane_id AS uuid) AND epoch = CAST(:epoch AS bigint)
    FOR KEY SHARE
)
UPDATE summary_states SET
    due_at = now() + CAST(:delay AS interval), claimed_until = now() + CAST(:delay AS interval),
    tries = CASE WHEN CAST(:reason AS text) IS NULL THEN 0 ELSE least(tries + 1, 1000) END,
    reason = CAST(:reason AS text),
    messages = CASE WHEN CAST(:delay AS interval) IS NULL THEN 0 ELSE messages END,
    tokens = CASE WHEN CAST(:delay AS interval) IS NULL THEN 0 ELSE tokens END
FROM lane
WHERE lane_id = lane.id AND version = CAST(:version AS integer)
