-- The log of deliveries is kept for a time: its bodies hold what users said.
DELETE FROM webhook_deliveries WHERE id IN (
    SELECT id FROM webhook_deliveries WHERE ended_at < now() - CAST(:age AS interval)
    ORDER BY ended_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
