-- Record how far a collection is filled. No row if it was deleted in the meantime.
UPDATE own_collections SET
    filled_at = CAST(:at AS timestamptz), filled_id = CAST(:id AS uuid),
    filled_seq = CAST(:seq AS bigint),
    records = records + CAST(:count AS bigint)
WHERE name = CAST(:name AS text) AND state = 'FILLING'
RETURNING name
