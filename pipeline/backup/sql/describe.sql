-- Export the snapshot of this transaction, so that pg_dump reads the same state.
SELECT pg_export_snapshot() AS name, now() AS taken_at,
       CAST(current_setting('server_version_num') AS integer) AS postgres
