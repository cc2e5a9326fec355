-- What a try came to. Only the newest try of a delivery may say so. A webhook whose deliveries are
-- given up one after the other is switched off, and says why; one that is gone, at once.
WITH done AS (
    UPDATE webhook_deliveries SET
        state = CAST(:state AS text),
        due_at = now() + CAST(:pause AS interval),
        status_code = CAST(:status_code AS smallint),
        error = CAST(:error AS text),
        ended_at = CASE WHEN CAST(:state AS text) <> 'PENDING' THEN now() END
    WHERE id = CAST(:id AS uuid) AND attempts = CAST(:attempt AS smallint) AND state = 'PENDING'
    RETURNING webhook_id, state
), told AS (
    SELECT w.id, CASE done.state WHEN 'DEAD' THEN w.dead_in_a_row + 1 ELSE 0 END AS dead_in_a_row
    FROM done JOIN webhooks w ON w.id = done.webhook_id
    WHERE done.state = 'DEAD' OR (done.state = 'DELIVERED' AND w.dead_in_a_row > 0)
    FOR UPDATE OF w
)
UPDATE webhooks SET
    dead_in_a_row = told.dead_in_a_row,
    is_active = is_active AND told.dead_in_a_row < CAST(:most_dead AS integer)
                AND NOT CAST(:gone AS boolean),
    disabled_reason = CASE
        WHEN NOT is_active THEN disabled_reason
        WHEN CAST(:gone AS boolean) THEN 'The receiver answered 410 Gone.'
        WHEN told.dead_in_a_row >= CAST(:most_dead AS integer)
        THEN told.dead_in_a_row || ' deliveries in a row were given up.' END
FROM told WHERE webhooks.id = told.id
