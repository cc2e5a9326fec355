-- Store the generated fields of a user's profile. A value that did not change stays, one that is not
-- stated any more ends. The profile is due again if memories changed after the stage before began to
-- read them: the row lock waits for a writer that has counted a change and not committed it.
-- Lock order: pipeline/ledger/locks.py.
WITH lane AS MATERIALIZED (
    SELECT id FROM lanes
    WHERE {fence.sql}
      AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
    FOR UPDATE
), advanced AS (
    UPDATE lanes SET
        {next_stage.sql}
    FROM lane
    WHERE lanes.id = lane.id
    RETURNING lanes.id AS lane_id, lanes.batch_id, lanes.project_id, lanes.user_id
), profile AS (
    INSERT INTO profiles AS p (
        project_id, user_id, changes, read_changes, generations, updated_at
    )
    SELECT project_id, user_id, CAST(:changes AS bigint), CAST(:changes AS bigint), 1, now()
    FROM advanced
    ON CONFLICT (project_id, user_id) DO UPDATE SET
        read_changes = excluded.read_changes, generations = p.generations + 1,
        updated_at = excluded.updated_at,
        due_at = CASE WHEN p.changes > excluded.read_changes THEN coalesce(p.due_at, now()) END
    RETURNING p.project_id, p.user_id
), field AS MATERIALIZED (
    SELECT name, value, memory_ids
    FROM jsonb_to_recordset(CAST(:fields AS jsonb))
         AS row (name text, value jsonb, memory_ids uuid[])
), current AS MATERIALIZED (
    SELECT f.id, f.name, f.value, f.memory_ids
    FROM profile, profile_fields f
    WHERE f.project_id = profile.project_id AND f.user_id = profile.user_id
      AND f.replaced_at IS NULL
), unchanged AS MATERIALIZED (
    SELECT current.id, current.name FROM current JOIN field USING (name, value, memory_ids)
), ended AS (
    UPDATE profile_fields SET replaced_at = now()
    WHERE id IN (SELECT id FROM current EXCEPT SELECT id FROM unchanged)
), added AS (
    INSERT INTO profile_fields (project_id, user_id, name, value, memory_ids, event_id)
    SELECT profile.project_id, profile.user_id, field.name, field.value, field.memory_ids,
           CAST(:event_id AS uuid)
    FROM profile, field
    WHERE field.name NOT IN (SELECT name FROM unchanged)
), {save_output.sql}
SELECT true AS lane, EXISTS (SELECT FROM advanced) AS advanced FROM lane
