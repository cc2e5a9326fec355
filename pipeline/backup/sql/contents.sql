-- Count up to ten events and up to ten memories: enough to tell if the ledger is empty.
SELECT (SELECT count(*) FROM (SELECT FROM events LIMIT 10) e)
     + (SELECT count(*) FROM (SELECT FROM memories LIMIT 10) m)
