-- Other sessions of Memlane in this database, by name.
SELECT DISTINCT application_name FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND application_name LIKE 'memlane%' AND application_name NOT LIKE 'memlane backup%'
ORDER BY application_name
