-- Delete complete erasures, their receipts and events, after their retention time. Those of projects
-- with seals stay: a verification would report them as removed.
WITH old AS MATERIALIZED (
    SELECT past.*
    FROM projects
    CROSS JOIN LATERAL (
        SELECT e.id, e.batch_id, e.project_id, e.status, e.event_type, e.replays
        FROM erasures JOIN events e ON e.id = erasures.event_id
        WHERE erasures.project_id = projects.id AND erasures.due_at IS NULL
          AND erasures.created_at < now() - CAST(:age AS interval)
        ORDER BY erasures.created_at
        LIMIT CAST(:limit AS integer)
        FOR UPDATE SKIP LOCKED
    ) AS past
    WHERE NOT EXISTS (SELECT FROM seal_projects s WHERE s.project_id = projects.id)
    LIMIT CAST(:limit AS integer)
), receipt AS (
    DELETE FROM erasures WHERE event_id = ANY (ARRAY(SELECT id FROM old))
), {delete_counted.sql}
