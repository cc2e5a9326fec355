-- A user's profile without its fields, and the state of its newest generation.
SELECT p.generations, p.updated_at, p.changes > p.read_changes AS stale, p.due_at, p.event_id,
       e.status, coalesce(e.failure_detail, e.failure_code) AS failure
FROM profiles p
LEFT JOIN events e ON e.id = p.event_id
WHERE p.project_id = CAST(:project_id AS uuid) AND p.user_id = CAST(:user_id AS text)
