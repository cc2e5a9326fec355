-- One page of a project's users, agents, apps and runs of these kinds, newest first: those with
-- memories, whose numbers come from the books, and those that are only registered. Reads the newest
-- owners of each kind by an index, up to the end of the page. Temporary runs are left out: the books do
-- not have them. owner.sql names them. Their metadata is read by owners_metadata.sql.
WITH {entries_of_owners.sql}, reach AS (
    -- An entry can bring the number of an owner to zero, so as many more are read.
    SELECT CAST(:offset AS bigint) + CAST(:limit AS bigint) + (SELECT count(*) FROM entry) AS rows
), with_memories AS (
    SELECT k.kind, b.owner AS id, b.since
    FROM unnest(CAST(:kinds AS text[])) k (kind), LATERAL (
        SELECT owner, since FROM books
        WHERE project_id = CAST(:project_id AS uuid) AND kind = k.kind
          AND owner <> '' AND amount > 0
        ORDER BY since DESC, owner LIMIT (SELECT rows FROM reach)
    ) b
), page_end AS (
    SELECT since FROM with_memories ORDER BY since DESC OFFSET (SELECT rows FROM reach) - 1 LIMIT 1
), registered AS (
    -- Without memories: the others are in `with_memories`, by the earlier of their two times.
    SELECT k.kind, o.id
    FROM unnest(CAST(:kinds AS text[])) k (kind), LATERAL (
        SELECT id FROM (
            SELECT id, created_at FROM owners
            WHERE project_id = CAST(:project_id AS uuid) AND kind = k.kind
              AND created_at >= coalesce((SELECT since FROM page_end), '-infinity')
              AND (kind <> 'run' OR NOT EXISTS (
                  SELECT FROM private_runs p
                  WHERE p.project_id = CAST(:project_id AS uuid) AND p.run_id = owners.id OFFSET 0))
            ORDER BY created_at DESC, id
            LIMIT (SELECT rows FROM reach) + CAST(:counted AS bigint)
        ) newest
        WHERE NOT EXISTS (
            SELECT FROM books b
            WHERE b.project_id = CAST(:project_id AS uuid) AND b.kind = k.kind
              AND b.owner = newest.id AND b.amount > 0)
        ORDER BY created_at DESC, id LIMIT (SELECT rows FROM reach)
    ) o
), candidate AS (
    SELECT kind, id FROM with_memories
    UNION ALL SELECT kind, id FROM registered
    UNION ALL SELECT kind, id FROM entry
), {known_owners.sql}
SELECT kind, id, name, described, memories, created_at, updated_at FROM known
ORDER BY created_at DESC, kind, id
LIMIT CAST(:limit AS bigint) OFFSET CAST(:offset AS bigint)
