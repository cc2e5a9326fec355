-- Delete samples of the queue after their retention time.
WITH old AS MATERIALIZED (
    SELECT project_id, minute FROM queue_samples
    WHERE minute < now() - CAST(:age AS interval)
    ORDER BY minute
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM queue_samples USING old
WHERE queue_samples.project_id = old.project_id AND queue_samples.minute = old.minute
