-- Remove collections from the list.
DELETE FROM own_collections WHERE name = ANY (CAST(:names AS text[])) RETURNING name
