-- Delete what is left of erased events after their retention time. Those of projects with seals stay:
-- a verification would report them as removed.
WITH old AS MATERIALIZED (
    SELECT past.*
    FROM projects
    CROSS JOIN LATERAL (
        SELECT id, batch_id, project_id, status, event_type, replays FROM events
        WHERE events.project_id = projects.id
          AND events.erased_at < now() - CAST(:age AS interval)
        ORDER BY events.erased_at
        LIMIT CAST(:limit AS integer)
        FOR UPDATE SKIP LOCKED
    ) AS past
    WHERE NOT EXISTS (SELECT FROM seal_projects s WHERE s.project_id = projects.id)
    LIMIT CAST(:limit AS integer)
), {delete_counted.sql}
