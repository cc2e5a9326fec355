SELECT id, 1 - (embedding <=> CAST(CAST(:vector AS real[]) AS vector)) AS similarity
FROM {table}
WHERE {passes}
ORDER BY similarity DESC, id
LIMIT :limit
