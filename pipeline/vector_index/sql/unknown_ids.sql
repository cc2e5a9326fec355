-- The given ids that the ledger does not have.
SELECT asked.id FROM unnest(CAST(:ids AS uuid[])) AS asked (id)
WHERE NOT EXISTS (SELECT FROM {table} WHERE {table}.id = asked.id)
