-- Limit the backlog of each webhook: the deliveries beyond the maximum, those due first, become
-- DEAD.
WITH RECURSIVE owing (webhook_id) AS (
    (SELECT webhook_id FROM webhook_deliveries WHERE due_at IS NOT NULL ORDER BY webhook_id LIMIT 1)
    UNION ALL
    SELECT (
        SELECT d.webhook_id FROM webhook_deliveries d
        WHERE d.due_at IS NOT NULL AND d.webhook_id > owing.webhook_id
        ORDER BY d.webhook_id LIMIT 1
    )
    FROM owing WHERE owing.webhook_id IS NOT NULL
), excess AS (
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
