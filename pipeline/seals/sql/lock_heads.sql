-- The heads of these lanes, locked.
SELECT lane_id, project_id, number, link, signature, key_id
FROM seal_heads WHERE lane_id = ANY (CAST(:lane_ids AS uuid[]))
ORDER BY lane_id
FOR UPDATE
