-- Count an attempt of a suspect, which is processed alone from here on.
UPDATE lanes SET attempts = attempts + 1
WHERE {fence.sql}
RETURNING attempts
