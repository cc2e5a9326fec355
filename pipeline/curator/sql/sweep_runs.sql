-- Queue the runs that are due. The fence is raised only for RUNNING ones: a worker whose lease has
-- ended writes nothing from here on, and a hint that waits in a backlog stays valid.
-- Of each project at most :limit runs are under way, so that adds find free workers: those with a
-- worker, and those with a hint in the broker. A run that waits for a model has neither.
-- The recursion visits each project with open runs, by one look-up in the index.
WITH RECURSIVE project AS (
    (SELECT project_id AS id FROM curator_runs WHERE due_at IS NOT NULL
     ORDER BY project_id LIMIT 1)
    UNION ALL
    SELECT (SELECT r.project_id FROM curator_runs r
             WHERE r.due_at IS NOT NULL AND r.project_id > project.id
             ORDER BY r.project_id LIMIT 1)
    FROM project WHERE project.id IS NOT NULL
), due AS MATERIALIZED (
    SELECT run.id, run.state
    FROM project, LATERAL (
        SELECT r.id, r.state FROM curator_runs r
        WHERE r.project_id = project.id AND r.due_at <= now()
        ORDER BY r.due_at
        LIMIT greatest(0, CAST(:limit AS integer) - (
            SELECT count(*) FROM curator_runs u
            WHERE u.project_id = project.id AND u.due_at > now()
              AND (u.state = 'RUNNING' OR u.hinted)))
        FOR UPDATE SKIP LOCKED
    ) run
    WHERE project.id IS NOT NULL
)
UPDATE curator_runs SET
    state = 'QUEUED', hinted = true, due_at = now() + CAST(:grace AS interval),
    fence = curator_runs.fence + CASE due.state WHEN 'RUNNING' THEN 1 ELSE 0 END
FROM due WHERE curator_runs.id = due.id
RETURNING curator_runs.id, curator_runs.fence
