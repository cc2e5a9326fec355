-- Numbers of owners by kind: those with memories, and those that are only registered. The books count
-- those with memories, without temporary runs; entries that are not yet folded may add or end some.
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
      AND (kind <> 'run' OR NOT EXISTS (
          SELECT FROM private_runs p
          WHERE p.project_id = CAST(:project_id AS uuid) AND p.run_id = owners.id OFFSET 0))
    LIMIT CAST(:counted AS bigint)
)
SELECT kind, CAST(sum(amount) AS bigint) AS number FROM (
    SELECT kind, amount FROM line
    UNION ALL
    SELECT r.kind, 1 FROM registered r
    LEFT JOIN books b ON b.project_id = CAST(:project_id AS uuid) AND b.kind = r.kind AND b.owner = r.id
    LEFT JOIN entry e ON e.kind = r.kind AND e.id = r.id
    WHERE coalesce(b.amount, 0) + coalesce(e.amount, 0) <= 0
) each
GROUP BY kind HAVING sum(amount) > 0
