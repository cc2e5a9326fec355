-- Delete the oldest rows of a table after their retention time; `time` is the column with their time.
-- A limited number of rows per call; rows that another sweeper has locked are skipped.
DELETE FROM {table}
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {table}
    WHERE {time} < now() - CAST(:age AS interval)
    ORDER BY {time}
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
))
