-- Numbers of owners by kind: those with memories, and those that are only registered. The books count
-- those with memories; entries that are not yet folded may add or end some.
WITH {entries_of_owners.sql}, line AS (
    SELECT left(kind, -1) AS kind, amount FROM books
    WHERE project_id = CAST(:project_id AS uuid) AND owner = ''
      AND kind = ANY (ARRAY['users', 'agents', 'apps', 'runs'])
    UNION ALL
    SELECT left(kind, -1), amount FROM book_entries
    WHERE project_id = CAST(:project_id AS uuid) AND owner = ''
      AND kind = ANY (ARRAY['users', 'agents', 'apps', 'runs'])
    UNION ALL
    SELECT e.kind, CAST(coalesce(b.amount, 0) + e.amount > 0 AS int)
                   - CAST(coalesce(b.amount, 0) > 0 AS int)
    FROM entry e
    LEFT JOIN books b ON b.project_id = CAST(:project_id AS uuid) AND b.kind = e.kind AND b.owner = e.id
), registered AS (
    SELECT kind, id FROM owners
    WHERE project_id = CAST(:project_id AS uuid) AND CAST(:registered AS boolean)
    LIMIT CAST(:counted AS bigint)
), private AS (
    SELECT run_id FROM private_runs
    WHERE project_id = CAST(:project_id AS uuid) AND run_id IS NOT NULL
      AND NOT CAST(:private AS boolean)
    LIMIT CAST(:counted AS bigint)
)
SELECT kind, CAST(sum(amount) AS bigint) AS number FROM (
    SELECT kind, amount FROM line
    UNION ALL
    SELECT r.kind, 1 FROM registered r
    LEFT JOIN books b ON b.project_id = CAST(:project_id AS uuid) AND b.kind = r.kind AND b.owner = r.id
    LEFT JOIN entry e ON e.kind = r.kind AND e.id = r.id
    WHERE coalesce(b.amount, 0) + coalesce(e.amount, 0) <= 0
    UNION ALL
    SELECT 'run', -1 FROM private p
    LEFT JOIN books b ON b.project_id = CAST(:project_id AS uuid) AND b.kind = 'run' AND b.owner = p.run_id
    LEFT JOIN entry e ON e.kind = 'run' AND e.id = p.run_id
    WHERE coalesce(b.amount, 0) + coalesce(e.amount, 0) > 0
) each
GROUP BY kind HAVING sum(amount) > 0
