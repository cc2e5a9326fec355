-- True if the graph server is filled and no change of these lanes waits for it.
SELECT EXISTS (
    SELECT FROM graph_mirrors WHERE name = CAST(:name AS text) AND filled_at IS NOT NULL
) AND NOT EXISTS (
    SELECT FROM graph_outbox
    WHERE project_id = CAST(:project_id AS uuid) AND lane_id = ANY (CAST(:lanes AS uuid[]))
) AS covered
