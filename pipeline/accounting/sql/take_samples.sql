-- The sample of this minute, of the projects that are busy or have entries in the books that are not
-- added up, and of those that were sampled in the two minutes before and have changed since, so that
-- a chart ends with the last state. The first call of a minute writes it.
WITH busy AS (
    SELECT project_id, count(*) AS lanes FROM lanes WHERE due_at IS NOT NULL GROUP BY project_id
    UNION ALL
    SELECT DISTINCT project_id, 1 FROM book_entries
), recent AS (
    SELECT DISTINCT ON (project_id) * FROM queue_samples
    WHERE minute >= date_trunc('minute', now()) - interval '2 minutes'
    ORDER BY project_id, minute DESC
), chosen AS MATERIALIZED (
    SELECT c.project_id, sum(c.lanes) AS lanes
    FROM (SELECT * FROM busy UNION ALL SELECT project_id, 0 FROM recent) c
    WHERE EXISTS (SELECT FROM projects p WHERE p.id = c.project_id)
      AND NOT EXISTS (
          SELECT FROM queue_samples s
          WHERE s.project_id = c.project_id AND s.minute = date_trunc('minute', now()))
    GROUP BY c.project_id
    ORDER BY 2 DESC
    LIMIT CAST(:most AS integer)
), line AS (
    SELECT c.project_id, b.kind, b.amount FROM chosen c JOIN books b USING (project_id)
    WHERE b.owner = ''::text
    UNION ALL
    SELECT c.project_id, e.kind, e.amount FROM chosen c JOIN book_entries e USING (project_id)
    WHERE e.owner = ''::text
), counted AS (
    SELECT project_id,
           coalesce(sum(amount) FILTER (WHERE kind = 'NUMBER'), 0)
               - coalesce(sum(amount) FILTER (WHERE kind = 'REPLAY'), 0) AS accepted,
           coalesce(sum(amount) FILTER (WHERE kind = 'SUCCEEDED'), 0) AS succeeded,
           coalesce(sum(amount) FILTER (WHERE kind = 'FAILED'), 0) AS failed,
           coalesce(sum(amount) FILTER (WHERE kind = 'SEARCH'), 0) AS searches,
           coalesce(sum(amount) FILTER (WHERE kind = 'MEMORY'), 0) AS memories,
           coalesce(sum(amount) FILTER (WHERE kind = 'PENDING'), 0) AS pending,
           coalesce(sum(amount) FILTER (WHERE kind = 'RUNNING'), 0) AS running
    FROM line GROUP BY project_id
), aged AS (
    -- The head of each busy lane: one row of its index.
    SELECT l.project_id,
           max(extract(epoch FROM now() - e.created_at)) FILTER (WHERE l.state <> 'WAITING') AS ready,
           max(extract(epoch FROM now() - e.created_at)) FILTER (WHERE l.state = 'WAITING') AS waiting
    FROM chosen c
    JOIN lanes l ON l.project_id = c.project_id AND l.due_at IS NOT NULL
    JOIN events e ON e.lane_id = l.id AND e.seq = l.settled_seq + 1 AND e.completed_at IS NULL
    GROUP BY l.project_id
)
INSERT INTO queue_samples (
    project_id, minute, accepted, succeeded, failed, searches, memories, pending, running,
    ready_s, waiting_s
)
SELECT c.project_id, date_trunc('minute', now()), n.accepted, n.succeeded, n.failed, n.searches,
       n.memories, n.pending, n.running, greatest(coalesce(a.ready, 0), 0),
       greatest(coalesce(a.waiting, 0), 0)
FROM chosen c
JOIN counted n USING (project_id)
LEFT JOIN aged a USING (project_id)
LEFT JOIN recent r USING (project_id)
WHERE c.lanes > 0
   OR (r.accepted, r.succeeded, r.failed, r.searches, r.memories, r.pending, r.running)
      IS DISTINCT FROM
      (n.accepted, n.succeeded, n.failed, n.searches, n.memories, n.pending, n.running)
ON CONFLICT (project_id, minute) DO NOTHING
