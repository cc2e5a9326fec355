-- Lock the head of a project against the sweeper: the rows that it has read stay as they are.
SELECT project_id FROM seal_projects WHERE project_id = CAST(:project_id AS uuid) FOR SHARE
