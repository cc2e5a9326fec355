-- The start of the oldest transaction of other sessions: all rows with an earlier date are committed.
SELECT least(now(), min(xact_start)) AS horizon, clock_timestamp() AS now
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
