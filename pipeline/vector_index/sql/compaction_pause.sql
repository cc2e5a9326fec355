-- Have the writers of a collection wait for some time; NULL ends the pause. No row if the collection
-- is not to be compacted any more, or is being filled.
UPDATE compactions c SET paused_until = now() + CAST(:pause AS interval)
WHERE c.name = CAST(:name AS text)
  AND NOT EXISTS (SELECT FROM own_collections o WHERE o.name = c.name AND o.state = 'FILLING')
RETURNING c.name
