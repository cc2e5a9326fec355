-- The owners of `line`, lines of the books, and of `registered`.
counted AS (
    SELECT kind, owner AS id, CAST(sum(amount) AS bigint) AS memories,
           min(since) AS created_at, max(last_at) AS updated_at
    FROM line
    GROUP BY kind, owner HAVING sum(amount) > 0
), known AS (
    SELECT kind, id, coalesce(r.name, id) AS name, coalesce(r.metadata, '{}') AS metadata,
           coalesce(c.memories, 0) AS memories,
           least(c.created_at, r.created_at) AS created_at,
           greatest(c.updated_at, r.updated_at) AS updated_at
    FROM counted c FULL JOIN registered r USING (kind, id)
