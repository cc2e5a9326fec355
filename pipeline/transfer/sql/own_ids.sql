-- The given ids that belong to rows of the project. Each table is read by its index of the ids.
SELECT id FROM (
    SELECT id, project_id FROM events
    UNION ALL SELECT id, project_id FROM memories
    UNION ALL SELECT id, project_id FROM past_states
    UNION ALL SELECT id, project_id FROM relations
    UNION ALL SELECT id, project_id FROM conflicts
    UNION ALL SELECT id, project_id FROM api_keys
) owned
WHERE id = ANY (CAST(:ids AS uuid[])) AND project_id = CAST(:project_id AS uuid)
