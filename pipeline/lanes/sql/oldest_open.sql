-- The oldest open event of the lanes that wait, and of those that do not, with the number of both,
-- among the 5,000 oldest open events of a project: an index has these in order.
-- The id of an event of a temporary run is left out.
WITH open AS (
    SELECT e.id, e.lane_id, coalesce(e.replayed_at, e.created_at) AS since
    FROM events e
    WHERE e.project_id = CAST(:project_id AS uuid) AND e.completed_at IS NULL
    ORDER BY coalesce(e.replayed_at, e.created_at)
    LIMIT 5000
), placed AS (
    SELECT open.since, l.state = 'WAITING' AS waits, l.stage, l.wait_code, l.wait_cause, l.due_at,
           CASE WHEN NOT l.temporary THEN open.id END AS event_id
    FROM open JOIN lanes l ON l.id = open.lane_id
)
SELECT DISTINCT ON (waits)
    waits, event_id, stage,
    greatest(0, extract(epoch FROM now() - since)) AS age_s,
    count(*) OVER (PARTITION BY waits) AS events,
    CASE WHEN waits THEN wait_code END AS wait_code,
    CASE WHEN waits THEN wait_cause END AS wait_cause,
    CASE WHEN waits THEN due_at END AS due_at
FROM placed
ORDER BY waits, since
