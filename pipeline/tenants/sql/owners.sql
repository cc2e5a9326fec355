-- One page of a project's users, agents, apps and runs: those with memories, whose numbers come
-- from the books, and those that are only registered. `totals` counts each kind over all pages.
-- Temporary runs are left out, unless `id` names one.
WITH line AS (
    SELECT project_id, kind, owner, amount, since, last_at FROM books
    UNION ALL
    SELECT project_id, kind, owner, amount, since, last_at FROM book_entries
), counted AS (
    SELECT kind, owner AS id, CAST(sum(amount) AS bigint) AS memories,
           min(since) AS created_at, max(last_at) AS updated_at
    FROM line
    WHERE project_id = CAST(:project_id AS uuid) AND owner <> ''
      AND (CAST(:kind AS text) IS NULL OR kind = CAST(:kind AS text))
      AND (CAST(:id AS text) IS NULL OR owner = CAST(:id AS text))
    GROUP BY kind, owner HAVING sum(amount) > 0
), registered AS (
    SELECT * FROM owners
    WHERE project_id = CAST(:project_id AS uuid)
      AND (CAST(:kind AS text) IS NULL OR kind = CAST(:kind AS text))
      AND (CAST(:id AS text) IS NULL OR id = CAST(:id AS text))
), known AS (
    SELECT kind, id, coalesce(r.name, id) AS name, coalesce(r.metadata, '{}') AS metadata,
           coalesce(c.memories, 0) AS memories,
           least(c.created_at, r.created_at) AS created_at,
           greatest(c.updated_at, r.updated_at) AS updated_at
    FROM counted c FULL JOIN registered r USING (kind, id)
    WHERE kind <> 'run' OR id = CAST(:id AS text) OR NOT EXISTS (
        SELECT FROM private_runs p
        WHERE p.project_id = CAST(:project_id AS uuid) AND p.run_id = id)
)
SELECT *, (
    SELECT jsonb_object_agg(kind, owners)
    FROM (SELECT kind, count(*) AS owners FROM known GROUP BY kind) each
) AS totals
FROM known
ORDER BY created_at DESC, kind, id
LIMIT CAST(:limit AS bigint) OFFSET CAST(:offset AS bigint)
