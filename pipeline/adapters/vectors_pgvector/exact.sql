-- The nearest of all records that pass the filter, each with the number of records that pass.
-- If more than `most` pass, or none, the only row has the number and NULL for the id. The count
-- stops at `most` + 1. One statement, because every search runs it.
SELECT passing.count, near.id, near.similarity
FROM (
    SELECT count(*) FROM (SELECT FROM {table} WHERE {passes} LIMIT CAST(:most AS bigint) + 1) AS counted
) AS passing
LEFT JOIN LATERAL (
    SELECT id, 1 - (embedding <=> CAST(CAST(:vector AS real[]) AS vector)) AS similarity
    FROM {table}
    WHERE {passes} AND passing.count <= CAST(:most AS bigint)
    ORDER BY similarity DESC, id
    LIMIT :limit
) AS near ON true
