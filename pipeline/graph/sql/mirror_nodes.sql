-- Entities as a graph server stores them.
SELECT id, project_id, lane_id, name, coalesce(plain_name, name_key) AS plain, kind, qualifier,
       coalesce(root_id, id) AS root, merged_into
FROM entities WHERE id = ANY (CAST(:ids AS uuid[]))
