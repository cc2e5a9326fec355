-- Queue all lanes of a project.
INSERT INTO seal_queue (project_id, kind, lane_id, row_id)
SELECT project_id, 'lane', id, '00000000-0000-0000-0000-000000000000'
FROM lanes WHERE project_id = CAST(:project_id AS uuid)
