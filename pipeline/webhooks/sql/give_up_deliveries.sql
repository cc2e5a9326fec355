-- Limit the backlog of each webhook: the deliveries beyond the maximum, those due first, become
-- DEAD.
WITH RECURSIVE {with_open_deliveries.sql}, excess AS (
    SELECT old.id
    FROM owing CROSS JOIN LATERAL (
        SELECT d.id FROM webhook_deliveries d
        WHERE d.webhook_id = owing.webhook_id AND d.due_at IS NOT NULL
        ORDER BY d.due_at DESC
        OFFSET CAST(:most AS integer)
        LIMIT CAST(:limit AS integer)
    ) old
), taken AS (
    SELECT id FROM webhook_deliveries
    WHERE id IN (SELECT id FROM excess) AND due_at IS NOT NULL
    FOR UPDATE SKIP LOCKED
)
UPDATE webhook_deliveries SET
    state = 'DEAD', due_at = NULL, ended_at = now(), error = CAST(:why AS text)
FROM taken WHERE webhook_deliveries.id = taken.id
