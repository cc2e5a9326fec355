-- A shadow's memories, which are locked by now, become the scope's, with their history; both name the
-- scope's own events. The vector index owes each a write, for it has met none of them under this
-- project. The scope holds their states since now; each memory stays listed where it was first said.
-- Events are looked up by their key: the time is linear, whatever the planner expects.
WITH remembered AS (
    UPDATE memory_history SET
        project_id = CAST(:project_id AS uuid), created_at = now(),
        event_id = (SELECT c.copy_of FROM events c WHERE c.id = memory_history.event_id)
    WHERE project_id = CAST(:shadow_id AS uuid)
)
UPDATE memories SET
    project_id = CAST(:project_id AS uuid), lane_id = CAST(:lane_id AS uuid),
    event_id = (SELECT c.copy_of FROM events c WHERE c.id = memories.event_id),
    updated_at = now(), projected_version = 0
WHERE lane_id = CAST(:shadow_lane_id AS uuid)
RETURNING id
