-- Move a shadow's memories with their history to the scope, and point them to the scope's own
-- events. The caller has locked them. Each is marked stale (projected_version = 0), because the
-- index has no vector of it under this project. Their history starts now; created_at stays. Their
-- earlier states were never states of the scope: they get empty intervals, so that no read of an
-- earlier time has them, but reads of the world's time do. Events are looked up by primary key in
-- subqueries, so the time is linear under any plan.
WITH past AS (
    UPDATE past_states SET
        project_id = CAST(:project_id AS uuid), lane_id = CAST(:lane_id AS uuid),
        stored_at = now(), replaced_at = now(),
        event_id = (SELECT c.copy_of FROM events c WHERE c.id = past_states.event_id)
    WHERE project_id = CAST(:shadow_id AS uuid)
), contested AS (
    UPDATE conflicts SET
        project_id = CAST(:project_id AS uuid), lane_id = CAST(:lane_id AS uuid),
        event_id = coalesce(
            (SELECT c.copy_of FROM events c WHERE c.id = conflicts.event_id), conflicts.event_id)
    WHERE lane_id = CAST(:shadow_lane_id AS uuid)
), members AS (
    UPDATE conflict_members SET lane_id = CAST(:lane_id AS uuid)
    WHERE lane_id = CAST(:shadow_lane_id AS uuid)
), remembered AS (
    UPDATE memory_history SET
        project_id = CAST(:project_id AS uuid), created_at = now(),
        temporary = (SELECT l.temporary FROM lanes l WHERE l.id = CAST(:lane_id AS uuid)),
        event_id = (SELECT c.copy_of FROM events c WHERE c.id = memory_history.event_id)
    WHERE project_id = CAST(:shadow_id AS uuid)
)
UPDATE memories SET
    project_id = CAST(:project_id AS uuid), lane_id = CAST(:lane_id AS uuid),
    event_id = (SELECT c.copy_of FROM events c WHERE c.id = memories.event_id),
    updated_at = now(), projected_version = 0
WHERE lane_id = CAST(:shadow_lane_id AS uuid)
RETURNING id
