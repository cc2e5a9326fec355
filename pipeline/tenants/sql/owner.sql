-- The owners of these kinds with this id, as in owners.sql, private runs too. The memories of a
-- temporary run are in no book: they are counted here.
WITH entry AS MATERIALIZED (
    SELECT kind, id, sum(amount) AS amount, min(since) AS since, max(last_at) AS last_at
    FROM (
        SELECT kind, owner AS id, amount, since, last_at FROM book_entries
        WHERE project_id = CAST(:project_id AS uuid) AND kind = ANY (CAST(:kinds AS text[]))
          AND owner = CAST(:id AS text)
        UNION ALL
        SELECT 'run', run_id, 1, created_at, updated_at FROM memories
        WHERE project_id = CAST(:project_id AS uuid) AND 'run' = ANY (CAST(:kinds AS text[]))
          AND run_id = CAST(:id AS text) AND temporary AND state = 'ACTIVE'
    ) line
    GROUP BY kind, id
), candidate AS (
    SELECT kind, CAST(:id AS text) AS id FROM unnest(CAST(:kinds AS text[])) k (kind)
), {known_owners.sql}
SELECT * FROM known
ORDER BY created_at DESC, kind, id
LIMIT CAST(:limit AS bigint)
