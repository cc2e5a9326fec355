-- Note the newest generation of a profile, which is created if it does not exist. Changes after
-- `changes` are still due. NULL: a person asked for the generation; it ends what is due when it is
-- stored (finish_profile.sql), because it may have read the memories before this statement.
INSERT INTO profiles AS p (project_id, user_id, event_id)
VALUES (CAST(:project_id AS uuid), CAST(:user_id AS text), CAST(:event_id AS uuid))
ON CONFLICT (project_id, user_id) DO UPDATE SET
    event_id = excluded.event_id,
    due_at = CASE WHEN p.changes = CAST(:changes AS bigint) THEN NULL ELSE p.due_at END
