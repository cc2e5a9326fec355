-- Events of the last hour by the minute in which they were accepted, of the newest 20,000.
WITH newest AS (
    SELECT created_at, status FROM events
    WHERE project_id = CAST(:project_id AS uuid) AND created_at > now() - interval '1 hour'
    ORDER BY created_at DESC
    LIMIT 20000
)
SELECT date_trunc('minute', created_at) AS minute,
       count(*) AS accepted,
       count(*) FILTER (WHERE status = 'FAILED') AS failed
FROM newest
GROUP BY 1
ORDER BY 1
