-- The tables of the ledger by name: those of the current schema, but not those of extensions.
SELECT quote_ident(relname) FROM pg_class c
WHERE relkind = 'r' AND relnamespace = CAST(current_schema() AS regnamespace)
  AND NOT EXISTS (
      SELECT FROM pg_depend d
      WHERE d.classid = CAST('pg_class' AS regclass) AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY relname
