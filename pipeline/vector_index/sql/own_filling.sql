-- Collections to be filled, the oldest request first.
SELECT * FROM own_collections
WHERE state = 'FILLING' AND starts_with(name, CAST(:prefix AS text))
ORDER BY requested_at, name
LIMIT CAST(:limit AS integer)
