-- Deliveries that are due, each for one courier at a time; a few of each webhook, so that nobody has
-- to wait behind a slow receiver's backlog. The try is counted before it is made: a courier that dies
-- in it has made one.
WITH due AS (
    SELECT first.id
    FROM webhooks w CROSS JOIN LATERAL (
        SELECT d.id, d.due_at FROM webhook_deliveries d
        WHERE d.webhook_id = w.id AND d.due_at <= now()
        ORDER BY d.due_at
        LIMIT CAST(:each AS integer)
    ) first
    WHERE w.is_active
    ORDER BY first.due_at
    LIMIT CAST(:limit AS integer)
), taken AS (
    SELECT id FROM webhook_deliveries
    WHERE id IN (SELECT id FROM due) AND due_at <= now()
    FOR UPDATE SKIP LOCKED
)
UPDATE webhook_deliveries d SET due_at = now() + CAST(:lease AS interval), attempts = attempts + 1
FROM taken, webhooks w
WHERE d.id = taken.id AND w.id = d.webhook_id
RETURNING d.id, d.body, d.attempts, w.url, w.secret, extract(epoch FROM now())::bigint AS sent_at
