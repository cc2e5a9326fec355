-- So that they are found as owed, see foreign.sql.
UPDATE memories SET projected_version = 0
WHERE projected_version <> 0
  AND state = 'ACTIVE'
  AND embedder <> :embedder
  AND NOT EXISTS (SELECT FROM shadows s WHERE s.id = memories.project_id)
