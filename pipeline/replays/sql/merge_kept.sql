-- What is still current in the scope at this point is the same in the shadow: the scope's row stays with
-- its id, its history and its feedback. The shadow's copy goes, and its receipts name the scope's row.
WITH renamed AS (
    UPDATE receipts SET memory_id = ours.id
    FROM events c, memories theirs, memories ours
    WHERE c.project_id = CAST(:shadow_id AS uuid) AND receipts.event_id = c.id
      AND theirs.id = receipts.memory_id
      AND theirs.lane_id = CAST(:shadow_lane_id AS uuid) AND theirs.state = 'ACTIVE'
      AND ours.lane_id = CAST(:lane_id AS uuid) AND ours.state = 'ACTIVE'
      AND ours.text_hash = theirs.text_hash
), dropped AS (
    DELETE FROM memories theirs USING memories ours
    WHERE theirs.lane_id = CAST(:shadow_lane_id AS uuid) AND theirs.state = 'ACTIVE'
      AND ours.lane_id = CAST(:lane_id AS uuid) AND ours.state = 'ACTIVE'
      AND ours.text_hash = theirs.text_hash
    RETURNING theirs.id
)
DELETE FROM memory_history USING dropped WHERE memory_history.memory_id = dropped.id
