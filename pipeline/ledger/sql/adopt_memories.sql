-- A shadow's memories become the scope's, with their history; both name the scope's own events. The
-- vector index owes each a write, for it has met none of them under this project. The scope holds
-- their states since now; each memory stays listed where it was first said.
WITH copy AS MATERIALIZED (
    SELECT c.id, c.copy_of FROM events c
    WHERE c.project_id = CAST(:shadow_id AS uuid)
), remembered AS (
    UPDATE memory_history SET
        project_id = CAST(:project_id AS uuid), created_at = now(),
        event_id = (SELECT copy_of FROM copy WHERE copy.id = memory_history.event_id)
    WHERE project_id = CAST(:shadow_id AS uuid)
)
UPDATE memories SET
    project_id = CAST(:project_id AS uuid), lane_id = CAST(:lane_id AS uuid),
    event_id = (SELECT copy_of FROM copy WHERE copy.id = memories.event_id),
    updated_at = now(), projected_version = 0
WHERE lane_id = CAST(:shadow_lane_id AS uuid)
RETURNING id
