-- Words of current memories of a project, by id.
SELECT id, terms FROM memories
WHERE id = ANY (CAST(:ids AS uuid[])) AND project_id = CAST(:project_id AS uuid)
  AND state = 'ACTIVE'
