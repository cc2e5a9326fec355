-- A page of a project's users, agents, apps and runs: those who have memories, counted, and those
-- who are only registered. `totals` counts each kind over all pages.
WITH each AS (
    SELECT named.kind, named.id, m.created_at, m.updated_at
    FROM memories m
    CROSS JOIN LATERAL (VALUES
        ('user', m.user_id), ('agent', m.agent_id), ('app', m.app_id), ('run', m.run_id)
    ) AS named (kind, id)
    WHERE m.project_id = CAST(:project_id AS uuid) AND m.state = 'ACTIVE' AND named.id IS NOT NULL
), held AS (
    SELECT kind, id, count(*) AS memories,
           min(created_at) AS created_at, max(updated_at) AS updated_at
    FROM each GROUP BY kind, id
), registered AS (
    SELECT * FROM owners WHERE project_id = CAST(:project_id AS uuid)
), known AS (
    SELECT kind, id, coalesce(r.name, id) AS name, coalesce(r.metadata, '{}') AS metadata,
           coalesce(h.memories, 0) AS memories,
           least(h.created_at, r.created_at) AS created_at,
           greatest(h.updated_at, r.updated_at) AS updated_at
    FROM held h FULL JOIN registered r USING (kind, id)
    WHERE (CAST(:kind AS text) IS NULL OR kind = CAST(:kind AS text))
      AND (CAST(:id AS text) IS NULL OR id = CAST(:id AS text))
)
SELECT *, (
    SELECT jsonb_object_agg(kind, owners)
    FROM (SELECT kind, count(*) AS owners FROM known GROUP BY kind) counted
) AS totals
FROM known
ORDER BY created_at DESC, kind, id
LIMIT CAST(:limit AS bigint) OFFSET CAST(:offset AS bigint)
