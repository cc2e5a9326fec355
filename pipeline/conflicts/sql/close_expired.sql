-- Mark conflicts whose last day is over as resolved. A limited number of rows per call; rows that
-- another sweeper has locked are skipped.
UPDATE conflicts SET open_until = NULL
WHERE id = ANY (ARRAY(
    SELECT id FROM conflicts
    -- The first condition is that of the index.
    WHERE open_until < 'infinity' AND open_until < (now() AT TIME ZONE 'UTC')::date
    ORDER BY open_until
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
))
