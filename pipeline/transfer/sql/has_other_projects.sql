-- True if the server has a project beside this one. Replays are none.
SELECT EXISTS (SELECT FROM projects WHERE id <> CAST(:project_id AS uuid)) AS shared
