-- The values of a user's profile as they were stored at a time.
SELECT f.name, f.value, f.memory_ids, f.stored_at
FROM profile_fields f
WHERE f.project_id = CAST(:project_id AS uuid) AND f.user_id = CAST(:user_id AS text)
  AND f.stored_at <= CAST(:as_of AS timestamptz)
  AND coalesce(f.replaced_at, 'infinity') > CAST(:as_of AS timestamptz)
ORDER BY f.name, f.id
