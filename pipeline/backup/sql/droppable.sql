-- Tables and functions of the current schema as arguments of DROP, without those of extensions.
SELECT 'TABLE IF EXISTS ' || CAST(c.oid AS regclass) FROM pg_class c
WHERE c.relkind = 'r' AND c.relnamespace = CAST(current_schema() AS regnamespace)
  AND NOT EXISTS (
      SELECT FROM pg_depend d
      WHERE d.classid = CAST('pg_class' AS regclass) AND d.objid = c.oid AND d.deptype = 'e')
UNION ALL
SELECT 'ROUTINE IF EXISTS ' || CAST(p.oid AS regprocedure) FROM pg_proc p
WHERE p.pronamespace = CAST(current_schema() AS regnamespace)
  AND NOT EXISTS (
      SELECT FROM pg_depend d
      WHERE d.classid = CAST('pg_proc' AS regclass) AND d.objid = p.oid AND d.deptype = 'e')
