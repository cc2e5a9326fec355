-- Add to the number of deleted records of a collection.
INSERT INTO compactions AS c (name, deleted)
VALUES (CAST(:name AS text), CAST(:number AS bigint))
ON CONFLICT (name) DO UPDATE SET deleted = c.deleted + excluded.deleted
