-- The next heads of a project, locked.
SELECT lane_id, project_id, number, link, signature, key_id
FROM seal_heads
WHERE project_id = CAST(:project_id AS uuid) AND lane_id > CAST(:after AS uuid)
ORDER BY lane_id
LIMIT CAST(:limit AS integer)
FOR UPDATE
