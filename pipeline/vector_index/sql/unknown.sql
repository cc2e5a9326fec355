-- Those of these ids that the ledger does not hold.
SELECT asked.id FROM unnest(CAST(:ids AS uuid[])) AS asked (id)
WHERE NOT EXISTS (SELECT FROM {table} WHERE {table}.id = asked.id)
