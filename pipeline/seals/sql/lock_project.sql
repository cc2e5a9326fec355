-- The head of a project, locked; no row if the project is being deleted. Lock order: the project, its
-- head, the heads of its lanes.
WITH present AS MATERIALIZED (
    SELECT id FROM projects WHERE id = CAST(:project_id AS uuid) FOR KEY SHARE SKIP LOCKED
)
SELECT p.*, t.tamper_evidence
FROM present JOIN seal_projects p ON p.project_id = present.id JOIN projects t ON t.id = p.project_id
FOR UPDATE OF p
