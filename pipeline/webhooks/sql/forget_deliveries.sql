-- Delete old deliveries, because their bodies contain users' texts: ended ones, and unsent ones of
-- disabled webhooks.
WITH ended AS MATERIALIZED (
    SELECT id FROM webhook_deliveries WHERE ended_at < now() - CAST(:age AS interval)
    ORDER BY ended_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
), unsent AS MATERIALIZED (
    SELECT id FROM webhook_deliveries
    WHERE due_at IS NOT NULL AND created_at < now() - CAST(:age AS interval)
      AND webhook_id IN (SELECT id FROM webhooks WHERE NOT is_active)
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM webhook_deliveries
WHERE id IN (SELECT id FROM ended UNION ALL SELECT id FROM unsent)
