-- A collection has no deleted records any more, or is gone.
DELETE FROM compactions WHERE name = CAST(:name AS text)
