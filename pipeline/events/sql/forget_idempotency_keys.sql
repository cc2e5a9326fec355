-- Delete idempotency keys older than their retention time. Their events stay.
WITH old AS MATERIALIZED (
    SELECT project_id, key FROM idempotency_keys
    WHERE created_at < now() - CAST(:age AS interval)
    ORDER BY created_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM idempotency_keys USING old
WHERE idempotency_keys.project_id = old.project_id AND idempotency_keys.key = old.key
