-- The graph selects candidates by its form of the vectors; the full vectors determine their order.
-- The settings are those of this transaction, and are made before the scan, which needs their row.
SELECT near.id, near.similarity
FROM (
    SELECT CAST(:candidates AS integer) AS candidates,
           set_config('hnsw.iterative_scan', 'strict_order', true),
           set_config('hnsw.ef_search', CAST(LEAST(:candidates, CAST(:broadest AS integer)) AS text), true),
           set_config('hnsw.max_scan_tuples', CAST(CAST(:walked AS integer) AS text), true)
) AS settings
CROSS JOIN LATERAL (
    SELECT id, 1 - (embedding <=> CAST(CAST(:vector AS real[]) AS vector)) AS similarity
    FROM (
        SELECT id, embedding
        FROM {table}
        WHERE {passes}
        ORDER BY {compared}
        LIMIT settings.candidates
    ) AS candidates
) AS near
ORDER BY near.similarity DESC, near.id
LIMIT :limit
