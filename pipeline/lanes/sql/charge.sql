-- Count an attempt of a suspect: from here on it is worked on alone.
UPDATE lanes SET attempts = attempts + 1
WHERE id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint)
  AND state = 'RUNNING' AND owner = CAST(:owner AS uuid)
RETURNING attempts
