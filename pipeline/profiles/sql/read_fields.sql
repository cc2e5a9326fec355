-- The current values of a user's profile. A value is left out as soon as one of its memories is
-- deleted, undone or expired, before the profile is generated again.
SELECT f.name, f.value, f.memory_ids, f.stored_at
FROM profile_fields f
WHERE f.project_id = CAST(:project_id AS uuid) AND f.user_id = CAST(:user_id AS text)
  AND f.replaced_at IS NULL
  AND NOT EXISTS (
      SELECT FROM unnest(f.memory_ids) AS source (id)
      CROSS JOIN LATERAL (
          SELECT m.state, m.superseded_by, m.expiration_date FROM memories m
          WHERE m.id = source.id OFFSET 0
      ) memory
      WHERE (memory.state = 'RETIRED' AND memory.superseded_by IS NULL)
         OR memory.expiration_date < CAST(now() AT TIME ZONE 'UTC' AS date))
ORDER BY f.name, f.id
