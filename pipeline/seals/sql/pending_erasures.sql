-- The erasures of a project.
SELECT event_id FROM erasures WHERE project_id = CAST(:project_id AS uuid)
