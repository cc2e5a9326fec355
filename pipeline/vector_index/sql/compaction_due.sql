-- Collections with many deleted records, and with more of them than others at the last check; most
-- first. Not those that are still being filled.
SELECT c.name, c.deleted
FROM compactions c
LEFT JOIN vector_collections v ON v.name = c.name
LEFT JOIN own_collections o ON o.name = c.name
WHERE c.deleted >= greatest(CAST(:least AS bigint), coalesce(v.records, o.records, 0))
  AND o.state IS DISTINCT FROM 'FILLING'
ORDER BY c.deleted DESC
LIMIT CAST(:limit AS integer)
