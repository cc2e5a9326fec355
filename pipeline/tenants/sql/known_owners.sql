-- The `known` owners among the candidates, with their exact numbers of memories, from the books and
-- the entries that are not yet folded. LATERAL: a look-up for each, no pass over the books.
counted AS (
    SELECT c.kind, c.id, coalesce(b.amount, 0) + coalesce(e.amount, 0) AS memories,
           least(b.since, e.since) AS since, greatest(b.last_at, e.last_at) AS last_at
    FROM (SELECT DISTINCT kind, id FROM candidate) c
    LEFT JOIN LATERAL (
        SELECT amount, since, last_at FROM books
        WHERE project_id = CAST(:project_id AS uuid) AND kind = c.kind AND owner = c.id LIMIT 1
    ) b ON true
    LEFT JOIN entry e ON e.kind = c.kind AND e.id = c.id
), known AS (
    SELECT c.kind, c.id, coalesce(o.name, c.id) AS name, coalesce(o.metadata, '{}') AS metadata,
           -- An empty object takes 8 bytes at most. The size of a large one is known without it.
           coalesce(pg_column_size(o.metadata) > 8, false) AS described,
           CAST(greatest(c.memories, 0) AS bigint) AS memories,
           least(CASE WHEN c.memories > 0 THEN c.since END, o.created_at) AS created_at,
           greatest(CASE WHEN c.memories > 0 THEN c.last_at END, o.updated_at) AS updated_at
    FROM counted c
    LEFT JOIN LATERAL (
        SELECT id, name, metadata, created_at, updated_at FROM owners
        WHERE project_id = CAST(:project_id AS uuid) AND kind = c.kind AND id = c.id LIMIT 1
    ) o ON true
    WHERE c.memories > 0 OR o.id IS NOT NULL
)
