-- True if all events that wait in the lane have low priority.
SELECT coalesce(normal_seq <= settled_seq, false) AS low FROM lanes
WHERE id = CAST(:lane_id AS uuid)
