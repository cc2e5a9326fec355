-- Delete entries of the audit log after their retention time.
WITH old AS MATERIALIZED (
    SELECT project_id, id FROM audit_entries
    WHERE at < now() - CAST(:age AS interval)
    ORDER BY at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM audit_entries USING old
WHERE audit_entries.project_id = old.project_id AND audit_entries.id = old.id
