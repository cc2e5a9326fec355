-- The scope's memories that are still active at this point have an equal row in the shadow. Keep
-- the scope's row with its id, history and feedback, delete the shadow's copy, and let the shadow's
-- receipts, conflicts and superseded memories name the scope's row. Returns the ids of both, for
-- the relations of the graph.
WITH pair AS MATERIALIZED (
    SELECT theirs.id AS theirs, ours.id AS ours
    FROM memories theirs JOIN memories ours USING (text_hash)
    WHERE theirs.lane_id = CAST(:shadow_lane_id AS uuid) AND theirs.state = 'ACTIVE'
      AND ours.lane_id = CAST(:lane_id AS uuid) AND ours.state = 'ACTIVE'
), renamed AS (
    UPDATE receipts SET memory_id = ours.id
    FROM events c, memories theirs, memories ours
    WHERE c.project_id = CAST(:shadow_id AS uuid) AND receipts.event_id = c.id
      AND theirs.id = receipts.memory_id
      AND theirs.lane_id = CAST(:shadow_lane_id AS uuid) AND theirs.state = 'ACTIVE'
      AND ours.lane_id = CAST(:lane_id AS uuid) AND ours.state = 'ACTIVE'
      AND ours.text_hash = theirs.text_hash
), contested AS (
    UPDATE conflict_members SET
        memory_id = coalesce((SELECT ours FROM pair WHERE theirs = memory_id), memory_id),
        against_id = coalesce((SELECT ours FROM pair WHERE theirs = against_id), against_id)
    WHERE lane_id = CAST(:shadow_lane_id AS uuid)
), superseded AS (
    UPDATE memories SET superseded_by = pair.ours
    FROM pair
    WHERE memories.lane_id = CAST(:shadow_lane_id AS uuid) AND memories.superseded_by = pair.theirs
), superseded_before AS (
    UPDATE past_states SET superseded_by = pair.ours
    FROM pair
    WHERE past_states.lane_id = CAST(:shadow_lane_id AS uuid)
      AND past_states.superseded_by = pair.theirs
), dropped AS (
    DELETE FROM memories theirs USING memories ours
    WHERE theirs.lane_id = CAST(:shadow_lane_id AS uuid) AND theirs.state = 'ACTIVE'
      AND ours.lane_id = CAST(:lane_id AS uuid) AND ours.state = 'ACTIVE'
      AND ours.text_hash = theirs.text_hash
    RETURNING theirs.id AS theirs, ours.id AS ours
), forgotten AS (
    DELETE FROM memory_history USING dropped WHERE memory_history.memory_id = dropped.theirs
)
SELECT theirs, ours FROM dropped
