-- Rows that wait for their seals, and the age of the oldest one in seconds.
SELECT count(*) AS waiting,
       coalesce(extract(epoch FROM now() - min(queued_at)), 0)::float8 AS oldest_s
FROM seal_queue
