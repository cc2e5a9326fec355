-- The nearest of those that pass, compared one by one, each with how many pass; where these are more
-- than `most`, which are counted no further, only that. One statement, for a search asks it each
-- time. No row has an id where none pass or too many do.
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
