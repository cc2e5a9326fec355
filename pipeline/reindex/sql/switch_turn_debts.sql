-- The rest is owed to the new index, whatever the old one held.
UPDATE turn_vectors SET projected_version = 0
WHERE projected_version <> 0
  AND NOT EXISTS (
      SELECT FROM rebuilt r WHERE r.memory_id = turn_vectors.id AND r.version = turn_vectors.version
  )
