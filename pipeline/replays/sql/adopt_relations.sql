-- A shadow's relations become the scope's, between the scope's own entities; those it had expire for
-- good. Every entity of the shadow has one of its name in the scope by now. Entities and events are
-- looked up by their keys: the time is linear, whatever the planner expects.
UPDATE relations SET
    project_id = CAST(:project_id AS uuid), lane_id = CAST(:lane_id AS uuid),
    source_id = (
        SELECT ours.id FROM entities theirs JOIN entities ours USING (name_key)
        WHERE theirs.id = relations.source_id AND ours.lane_id = CAST(:lane_id AS uuid)),
    destination_id = (
        SELECT ours.id FROM entities theirs JOIN entities ours USING (name_key)
        WHERE theirs.id = relations.destination_id AND ours.lane_id = CAST(:lane_id AS uuid)),
    event_id = (SELECT c.copy_of FROM events c WHERE c.id = relations.event_id),
    ended_by = (SELECT c.copy_of FROM events c WHERE c.id = relations.ended_by)
WHERE lane_id = CAST(:shadow_lane_id AS uuid)
