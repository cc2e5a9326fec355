-- The given ids that belong to rows of the project.
SELECT id FROM events
WHERE id = ANY (CAST(:ids AS uuid[])) AND project_id = CAST(:project_id AS uuid)
UNION ALL
SELECT id FROM memories
WHERE id = ANY (CAST(:ids AS uuid[])) AND project_id = CAST(:project_id AS uuid)
UNION ALL
SELECT id FROM past_states
WHERE id = ANY (CAST(:ids AS uuid[])) AND project_id = CAST(:project_id AS uuid)
UNION ALL
SELECT id FROM relations
WHERE id = ANY (CAST(:ids AS uuid[])) AND project_id = CAST(:project_id AS uuid)
UNION ALL
SELECT id FROM conflicts
WHERE id = ANY (CAST(:ids AS uuid[])) AND project_id = CAST(:project_id AS uuid)
UNION ALL
SELECT id FROM api_keys
WHERE id = ANY (CAST(:ids AS uuid[])) AND project_id = CAST(:project_id AS uuid)
