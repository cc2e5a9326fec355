-- Webhooks with open deliveries: steps through the index from one webhook to the next, so that
-- webhooks without any cost nothing.
owing (webhook_id) AS (
    (SELECT webhook_id FROM webhook_deliveries WHERE due_at IS NOT NULL ORDER BY webhook_id LIMIT 1)
    UNION ALL
    SELECT (
        SELECT d.webhook_id FROM webhook_deliveries d
        WHERE d.due_at IS NOT NULL AND d.webhook_id > owing.webhook_id
        ORDER BY d.webhook_id LIMIT 1
    )
    FROM owing WHERE owing.webhook_id IS NOT NULL
)
