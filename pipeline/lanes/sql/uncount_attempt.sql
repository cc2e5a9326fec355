-- A live worker lost this lane: take back its counted attempt, because it was no crash. Only while
-- the lane is in the same stage; after that, the count belongs to another stage.
UPDATE lanes SET attempts = attempts - 1
WHERE id = CAST(:lane_id AS uuid) AND fence > CAST(:fence AS bigint)
  AND batch_id = CAST(:batch_id AS uuid) AND stage = CAST(:stage AS text) AND attempts > 0
