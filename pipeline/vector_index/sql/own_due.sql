-- Served collections, the one with the oldest check first.
SELECT * FROM own_collections
WHERE state = 'SERVED' AND starts_with(name, CAST(:prefix AS text))
ORDER BY checked_at, name
LIMIT CAST(:limit AS integer)
