-- Paths of relations that start at nodes with one of these names or ids, nearest first: at most
-- `hops` relations long, through at most `fan` relations of each node, the newest ones, and at most
-- `most` paths. No path visits a node twice. Merged nodes are one node. Of a node on the way, at
-- most `hub` relations of one name are followed back to their sources: a path into a city does not
-- lead on to all who live there.
WITH RECURSIVE start AS MATERIALIZED (
    SELECT DISTINCT coalesce(e.root_id, e.id) AS node FROM entities e
    WHERE e.lane_id = ANY (CAST(:lanes AS uuid[]))
      AND coalesce(e.plain_name, e.name_key) = ANY (CAST(:names AS text[]))
    UNION
    SELECT coalesce(e.root_id, e.id) FROM entities e
    WHERE e.id = ANY (CAST(:ids AS uuid[])) AND e.lane_id = ANY (CAST(:lanes AS uuid[]))
), walk AS (
    SELECT node, CAST('{}' AS uuid[]) AS path, ARRAY[node] AS visited, 0 AS hops FROM start
    UNION ALL
    SELECT step.node, walk.path || step.id, walk.visited || step.node, walk.hops + 1
    FROM walk, LATERAL (
        SELECT near.id, coalesce(far.root_id, far.id) AS node
        FROM (
            SELECT walk.node AS id UNION ALL
            SELECT e.id FROM entities e WHERE e.root_id = walk.node
        ) member, LATERAL (
            (SELECT r.id, r.destination_id AS far_id, r.valid_from FROM relations r
              WHERE r.source_id = member.id AND {at_times.sql}
              ORDER BY r.valid_from DESC, r.id LIMIT CAST(:fan AS integer))
            UNION ALL
            (SELECT back.id, back.source_id, back.valid_from FROM (
                SELECT newest.*, row_number() OVER (
                           PARTITION BY newest.relation ORDER BY newest.valid_from DESC, newest.id
                       ) AS place
                FROM (SELECT r.id, r.source_id, r.valid_from, r.relation FROM relations r
                      WHERE r.destination_id = member.id AND {at_times.sql}
                      ORDER BY r.valid_from DESC, r.id LIMIT CAST(:fan AS integer)) newest
              ) back
              WHERE walk.hops = 0 OR back.place <= CAST(:hub AS integer))
        ) near JOIN entities far ON far.id = near.far_id
        WHERE coalesce(far.root_id, far.id) <> ALL (walk.visited)
        ORDER BY near.valid_from DESC, near.id
        LIMIT CAST(:fan AS integer)
    ) step
    WHERE walk.hops < CAST(:hops AS integer)
)
SELECT path FROM walk WHERE hops > 0 LIMIT CAST(:most AS integer)
