-- Those of the ids that are in a lane.
SELECT id FROM {table}
WHERE id = ANY (CAST(:ids AS uuid[])) AND lane_id = CAST(:lane_id AS uuid)
