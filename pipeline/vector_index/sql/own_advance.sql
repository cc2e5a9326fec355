-- Record how far a collection is filled. No row if it was deleted in the meantime.
UPDATE own_collections SET
    filled_at = CAST(:created_at AS timestamptz), filled_id = CAST(:id AS uuid),
    records = records + CAST(:count AS bigint)
WHERE name = CAST(:name AS text) AND state = 'FILLING'
RETURNING name
