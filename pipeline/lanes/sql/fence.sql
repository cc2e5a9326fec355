-- The fence: only the activation that owns the lane now may write. A claim by another one raises it.
id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint)
AND state = 'RUNNING' AND owner = CAST(:owner AS uuid)
