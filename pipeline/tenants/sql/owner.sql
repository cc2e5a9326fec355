-- Like owners.sql, of one kind and with one id.
WITH line AS (
    SELECT kind, owner, amount, since, last_at FROM books
    WHERE project_id = CAST(:project_id AS uuid) AND kind = CAST(:kind AS text)
      AND owner = CAST(:id AS text)
    UNION ALL
    SELECT kind, owner, amount, since, last_at FROM book_entries
    WHERE project_id = CAST(:project_id AS uuid) AND kind = CAST(:kind AS text)
      AND owner = CAST(:id AS text)
), registered AS (
    SELECT kind, id, name, metadata, created_at, updated_at FROM owners
    WHERE project_id = CAST(:project_id AS uuid)
      AND kind = CAST(:kind AS text) AND id = CAST(:id AS text)
), {known_owners.sql}
{owners_page.sql}
