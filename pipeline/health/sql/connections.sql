-- Connections that ordinary roles may open, and those that are open now.
SELECT CAST(current_setting('max_connections') AS integer)
       - CAST(current_setting('superuser_reserved_connections') AS integer)
       - coalesce(CAST(current_setting('reserved_connections', true) AS integer), 0) AS allowed,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS open
