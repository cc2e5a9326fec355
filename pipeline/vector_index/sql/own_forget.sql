-- Remove collections from the list, with the numbers of their deleted records.
WITH uncounted AS (
    DELETE FROM compactions WHERE name = ANY (CAST(:names AS text[])) RETURNING name
)
DELETE FROM own_collections WHERE name = ANY (CAST(:names AS text[])) RETURNING name
