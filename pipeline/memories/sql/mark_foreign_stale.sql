-- Mark memories with vectors of another model as stale, so that stale_of_other_models.sql returns them.
UPDATE memories SET projected_version = 0
WHERE projected_version <> 0
  AND state = 'ACTIVE'
  AND embedder <> :embedder
  AND NOT EXISTS (SELECT FROM shadows s WHERE s.id = memories.project_id)
