-- Record that a collection is complete.
UPDATE own_collections SET state = 'SERVED', checked_at = now()
WHERE name = CAST(:name AS text) AND state = 'FILLING'
RETURNING name
