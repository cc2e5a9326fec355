-- The rest is stale in the new index, also where the old one held it.
UPDATE memories SET projected_version = 0
WHERE projected_version <> 0
  AND NOT EXISTS (
      SELECT FROM rebuilt r WHERE r.memory_id = memories.id AND r.version = memories.version
  )
  AND (state = 'ACTIVE' OR EXISTS (SELECT FROM rebuilt r WHERE r.memory_id = memories.id))
