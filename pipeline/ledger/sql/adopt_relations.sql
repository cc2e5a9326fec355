-- A shadow's relations become the scope's, between the scope's own entities; those it had expire for
-- good. Every entity of the shadow has one of its name in the scope by now.
WITH copy AS MATERIALIZED (
    SELECT id, copy_of FROM events WHERE project_id = CAST(:shadow_id AS uuid)
), same AS MATERIALIZED (
    SELECT theirs.id AS there, ours.id AS here
    FROM entities theirs JOIN entities ours USING (name_key)
    WHERE theirs.lane_id = CAST(:shadow_lane_id AS uuid) AND ours.lane_id = CAST(:lane_id AS uuid)
)
UPDATE relations SET
    project_id = CAST(:project_id AS uuid), lane_id = CAST(:lane_id AS uuid),
    source_id = (SELECT here FROM same WHERE there = source_id),
    destination_id = (SELECT here FROM same WHERE there = destination_id),
    event_id = (SELECT copy_of FROM copy WHERE copy.id = event_id),
    ended_by = (SELECT copy_of FROM copy WHERE copy.id = ended_by)
WHERE lane_id = CAST(:shadow_lane_id AS uuid)
