-- Those of these collections whose writers wait.
SELECT name FROM compactions
WHERE name = ANY (CAST(:names AS text[])) AND paused_until > now()
