-- Move a shadow's relations to the scope, between the scope's own entities. The scope's own
-- relations have expired by now, and each entity of the shadow has one with the same name in the
-- scope. They are known here from now on, so that no read of an earlier time has them. Entities and
-- events are looked up by key in subqueries, so the time is linear under any plan.
UPDATE relations SET
    project_id = CAST(:project_id AS uuid), lane_id = CAST(:lane_id AS uuid),
    source_id = (
        SELECT ours.id FROM entities theirs JOIN entities ours USING (name_key)
        WHERE theirs.id = relations.source_id AND ours.lane_id = CAST(:lane_id AS uuid)),
    destination_id = (
        SELECT ours.id FROM entities theirs JOIN entities ours USING (name_key)
        WHERE theirs.id = relations.destination_id AND ours.lane_id = CAST(:lane_id AS uuid)),
    memory_id = coalesce(
        -- The scope's memory that was kept in place of an equal one of the shadow.
        (SELECT k.ours FROM unnest(CAST(:kept_theirs AS uuid[]), CAST(:kept_ours AS uuid[]))
            AS k (theirs, ours) WHERE k.theirs = relations.memory_id), memory_id),
    event_id = (SELECT c.copy_of FROM events c WHERE c.id = relations.event_id),
    ended_by = (SELECT c.copy_of FROM events c WHERE c.id = relations.ended_by),
    created_at = now(), expired_at = CASE WHEN expired_at IS NOT NULL THEN now() END,
    past_ends = NULL
WHERE lane_id = CAST(:shadow_lane_id AS uuid)
