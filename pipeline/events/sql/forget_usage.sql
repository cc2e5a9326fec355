-- Delete daily costs of users older than their retention time. The sums of the project stay.
DELETE FROM usage_daily
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM usage_daily
    WHERE user_id <> '' AND day < CAST(now() - CAST(:age AS interval) AS date)
    ORDER BY day
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
))
