-- A worker that is alive lost this lane: the attempt it had counted was no crash. Nothing is given
-- back once the stage has ended, for then the count began anew.
UPDATE lanes SET attempts = attempts - 1
WHERE id = CAST(:lane_id AS uuid) AND fence > CAST(:fence AS bigint)
  AND batch_id = CAST(:batch_id AS uuid) AND stage = CAST(:stage AS text) AND attempts > 0
