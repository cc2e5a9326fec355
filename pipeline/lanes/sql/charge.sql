-- Count an attempt of a suspect, which is processed alone from here on.
UPDATE lanes SET attempts = attempts + 1
WHERE id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint)
  AND state = 'RUNNING' AND owner = CAST(:owner AS uuid)
RETURNING attempts
