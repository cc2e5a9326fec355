-- Like owners.sql, of one kind.
WITH line AS (
    SELECT kind, owner, amount, since, last_at FROM books
    WHERE project_id = CAST(:project_id AS uuid) AND kind = CAST(:kind AS text) AND owner <> ''
    UNION ALL
    SELECT kind, owner, amount, since, last_at FROM book_entries
    WHERE project_id = CAST(:project_id AS uuid) AND kind = CAST(:kind AS text) AND owner <> ''
), registered AS (
    SELECT kind, id, name, metadata, created_at, updated_at FROM owners
    WHERE project_id = CAST(:project_id AS uuid) AND kind = CAST(:kind AS text)
), {known_owners.sql}
    WHERE kind <> 'run' OR NOT EXISTS (
        SELECT FROM private_runs p
        WHERE p.project_id = CAST(:project_id AS uuid) AND p.run_id = id)
{owners_page.sql}
