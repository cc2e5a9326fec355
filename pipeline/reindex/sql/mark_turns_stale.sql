-- Mark all other turns as stale in the new index, even if the old index had them.
UPDATE turn_vectors SET projected_version = 0
WHERE projected_version <> 0
  AND NOT EXISTS (
      SELECT FROM rebuilt r WHERE r.memory_id = turn_vectors.id AND r.version = turn_vectors.version
  )
