-- A live worker lost this lane: take its counted attempt back, because it was no crash. Not once the
-- stage has ended: the count is of another stage then.
UPDATE lanes SET attempts = attempts - 1
WHERE id = CAST(:lane_id AS uuid) AND fence > CAST(:fence AS bigint)
  AND batch_id = CAST(:batch_id AS uuid) AND stage = CAST(:stage AS text) AND attempts > 0
