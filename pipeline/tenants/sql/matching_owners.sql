-- The owners of these kinds whose id or name has a text in it, in upper or lower case, newest first: among
-- the newest of each kind, and an id that equals the text. Temporary and private runs are left out.
WITH {entries_of_owners.sql}, with_memories AS (
    SELECT k.kind, b.id
    FROM unnest(CAST(:kinds AS text[])) k (kind), LATERAL (
        SELECT owner AS id FROM (
            SELECT owner, since FROM books
            WHERE project_id = CAST(:project_id AS uuid) AND kind = k.kind
              AND owner <> '' AND amount > 0
            ORDER BY since DESC, owner LIMIT CAST(:among AS bigint)
        ) newest
        WHERE strpos(lower(owner), lower(CAST(:text AS text))) > 0
        ORDER BY since DESC, owner LIMIT CAST(:limit AS bigint)
    ) b
), registered AS (
    SELECT k.kind, o.id
    FROM unnest(CAST(:kinds AS text[])) k (kind), LATERAL (
        SELECT id FROM (
            SELECT id, name, created_at FROM owners
            WHERE project_id = CAST(:project_id AS uuid) AND kind = k.kind
            ORDER BY created_at DESC, id LIMIT CAST(:among AS bigint)
        ) newest
        WHERE strpos(lower(id), lower(CAST(:text AS text))) > 0
           OR strpos(lower(name), lower(CAST(:text AS text))) > 0
        ORDER BY created_at DESC, id LIMIT CAST(:limit AS bigint)
    ) o
), candidate AS (
    SELECT c.kind, c.id FROM (
        SELECT kind, id FROM with_memories
        UNION ALL SELECT kind, id FROM registered
        UNION ALL SELECT kind, id FROM entry
        WHERE strpos(lower(id), lower(CAST(:text AS text))) > 0
        UNION ALL SELECT kind, CAST(:text AS text) FROM unnest(CAST(:kinds AS text[])) k (kind)
    ) c
    WHERE c.kind <> 'run' OR NOT EXISTS (
        SELECT FROM private_runs p
        WHERE p.project_id = CAST(:project_id AS uuid) AND p.run_id = c.id OFFSET 0)
), {known_owners.sql}
SELECT kind, id, name, described, memories, created_at, updated_at FROM known
ORDER BY created_at DESC, kind, id
LIMIT CAST(:limit AS bigint)
