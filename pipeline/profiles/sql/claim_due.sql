-- Take one profile with a change that is older than the pause, and whose project fills profiles. It
-- is due again after another pause, so a crash before the event is accepted loses nothing. Profiles
-- of other projects are not due any more.
WITH due AS MATERIALIZED (
    SELECT project_id, user_id FROM profiles
    WHERE due_at <= now() - CAST(:pause AS interval)
    ORDER BY due_at
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE profiles p SET
    due_at = CASE WHEN s.profile_settings @> '{"enabled": true}' THEN now() END
FROM due JOIN projects s ON s.id = due.project_id
WHERE p.project_id = due.project_id AND p.user_id = due.user_id
RETURNING p.project_id, p.user_id, p.id, p.changes, s.profile_settings
