-- Record the result of a try, if it is still the newest try of its delivery. The webhook is
-- disabled, with a reason: at once if it answered 410 Gone; after a number of dead deliveries in a
-- row; or, if it never answered, after a number of tries and a minimum time.
WITH done AS (
    UPDATE webhook_deliveries SET
        state = CAST(:state AS text),
        due_at = now() + CAST(:pause AS interval),
        status_code = CAST(:status_code AS smallint),
        error = CAST(:error AS text),
        ended_at = CASE WHEN CAST(:state AS text) <> 'PENDING' THEN now() END
    WHERE id = CAST(:id AS uuid) AND attempts = CAST(:attempt AS smallint) AND state = 'PENDING'
    RETURNING webhook_id, state, status_code IS NOT NULL AS answered
), counted AS (
    SELECT w.id,
           CASE done.state WHEN 'DEAD' THEN w.dead_in_a_row + 1
                           WHEN 'DELIVERED' THEN 0 ELSE w.dead_in_a_row END AS dead_in_a_row,
           -- NULL once it has answered anything.
           CASE WHEN NOT done.answered AND w.silent_tries IS NOT NULL
                THEN least(w.silent_tries + 1, 1000) END AS silent_tries
    FROM done JOIN webhooks w ON w.id = done.webhook_id
    WHERE done.state = 'DEAD' OR (done.state = 'DELIVERED' AND w.dead_in_a_row > 0)
       OR w.silent_tries IS NOT NULL
    FOR UPDATE OF w
), judged AS (
    SELECT counted.*, CASE
        WHEN CAST(:gone AS boolean) THEN 'The receiver answered 410 Gone.'
        WHEN counted.dead_in_a_row >= CAST(:most_dead AS integer)
        THEN counted.dead_in_a_row || ' deliveries in a row were given up.'
        WHEN counted.silent_tries >= CAST(:most_silent AS integer)
         AND webhooks.updated_at < now() - CAST(:silent_for AS interval)
        THEN 'It has never answered: ' || counted.silent_tries || ' tries.' END AS verdict
    FROM counted JOIN webhooks ON webhooks.id = counted.id
)
UPDATE webhooks SET
    dead_in_a_row = judged.dead_in_a_row,
    silent_tries = judged.silent_tries,
    is_active = is_active AND judged.verdict IS NULL,
    disabled_reason = CASE WHEN is_active THEN judged.verdict ELSE disabled_reason END
FROM judged WHERE webhooks.id = judged.id
