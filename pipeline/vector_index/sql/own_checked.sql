-- Record a check of a collection.
UPDATE own_collections SET records = CAST(:records AS bigint), checked_at = now()
WHERE name = CAST(:name AS text)
RETURNING name
