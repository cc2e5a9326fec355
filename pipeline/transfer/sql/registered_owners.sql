-- The owners among these that are registered.
SELECT o.id FROM unnest(CAST(:kinds AS text[]), CAST(:ids AS text[])) AS asked (kind, id)
JOIN owners o ON o.project_id = CAST(:project_id AS uuid) AND o.kind = asked.kind AND o.id = asked.id
