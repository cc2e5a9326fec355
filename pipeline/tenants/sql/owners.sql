-- One page of a project's users, agents, apps and runs: those with memories, whose numbers come
-- from the books, and those that are only registered. `totals` counts each kind over all pages.
-- Private runs are left out; owner.sql and owners_with_id.sql name them.
WITH line AS (
    SELECT kind, owner, amount, since, last_at FROM books
    WHERE project_id = CAST(:project_id AS uuid) AND owner <> ''
    UNION ALL
    SELECT kind, owner, amount, since, last_at FROM book_entries
    WHERE project_id = CAST(:project_id AS uuid) AND owner <> ''
), registered AS (
    SELECT kind, id, name, metadata, created_at, updated_at FROM owners
    WHERE project_id = CAST(:project_id AS uuid)
), {known_owners.sql}
    WHERE kind <> 'run' OR NOT EXISTS (
        SELECT FROM private_runs p
        WHERE p.project_id = CAST(:project_id AS uuid) AND p.run_id = id)
{owners_page.sql}
