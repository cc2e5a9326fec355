-- The graph selects candidates in half precision; the full vectors determine their order.
SELECT id, 1 - (embedding <=> CAST(CAST(:vector AS real[]) AS vector)) AS similarity
FROM (
    SELECT id, embedding
    FROM {table}
    WHERE {passes}
    ORDER BY CAST(embedding AS halfvec({dimensions}))
             <=> CAST(CAST(CAST(:vector AS real[]) AS vector) AS halfvec({dimensions}))
    LIMIT :limit
) AS near
ORDER BY similarity DESC, id
