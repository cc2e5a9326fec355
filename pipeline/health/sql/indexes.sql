-- The indexes of the current schema: name, and if statements can use it.
SELECT c.relname AS name, i.indisvalid AND i.indisready AS valid
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = CAST(current_schema() AS regnamespace)
ORDER BY c.relname
