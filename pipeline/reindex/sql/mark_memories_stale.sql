-- Mark all other memories as stale in the new index, even if the old index had them.
UPDATE memories SET projected_version = 0
WHERE projected_version <> 0
  AND NOT EXISTS (
      SELECT FROM rebuilt r WHERE r.memory_id = memories.id AND r.version = memories.version
  )
  AND (state = 'ACTIVE' OR EXISTS (SELECT FROM rebuilt r WHERE r.memory_id = memories.id))
