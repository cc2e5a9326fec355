-- The names of the current fields that these memories state.
SELECT source.id AS memory_id, array_agg(DISTINCT f.name ORDER BY f.name) AS names
FROM profile_fields f, unnest(f.memory_ids) AS source (id)
WHERE f.memory_ids && CAST(:memory_ids AS uuid[])
  AND f.project_id = CAST(:project_id AS uuid) AND f.replaced_at IS NULL
  AND source.id = ANY (CAST(:memory_ids AS uuid[]))
GROUP BY source.id
