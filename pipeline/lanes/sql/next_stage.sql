-- The lane's next stage. The lane is queued, or stays with its worker (`keeps`).
state = CASE WHEN CAST(:keeps AS boolean) THEN lanes.state ELSE 'QUEUED' END,
stage = coalesce(CAST(:next_stage AS text), lanes.stage),
due_at = now() + CAST(:due_in AS interval),
owner = CASE WHEN CAST(:keeps AS boolean) THEN lanes.owner END,
attempts = CAST(:attempts AS smallint), waits = 0, wait_code = NULL
