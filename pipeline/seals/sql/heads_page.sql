-- Heads of a project's lanes, in the order of their ids.
SELECT lane_id, number, link, signature, key_id
FROM seal_heads
WHERE project_id = CAST(:project_id AS uuid) AND lane_id BETWEEN CAST(:low AS uuid) AND CAST(:high AS uuid)
ORDER BY lane_id
LIMIT CAST(:limit AS integer)
