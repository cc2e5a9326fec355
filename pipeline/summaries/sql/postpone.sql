-- The previous version stays. Try again after the delay; without one, there is nothing to do.
UPDATE summary_states SET
    due_at = now() + CAST(:delay AS interval),
    tries = CASE WHEN CAST(:reason AS text) IS NULL THEN 0 ELSE least(tries + 1, 1000) END,
    reason = CAST(:reason AS text),
    messages = CASE WHEN CAST(:delay AS interval) IS NULL THEN 0 ELSE messages END,
    tokens = CASE WHEN CAST(:delay AS interval) IS NULL THEN 0 ELSE tokens END
WHERE lane_id = CAST(:lane_id AS uuid) AND version = CAST(:version AS integer)
