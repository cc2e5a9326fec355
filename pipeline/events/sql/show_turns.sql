-- Take back what a clearing hid in its lanes, which are locked by now. Where a later clearing of the lane
-- still stands, its range grows over this one: once that is undone too, all of it shows again.
WITH undone AS (
    DELETE FROM cleared_lanes WHERE event_id = CAST(:event_id AS uuid)
    RETURNING lane_id, before_seq, after_seq
), grown AS (
    UPDATE cleared_lanes SET before_seq = undone.before_seq
    FROM undone
    WHERE cleared_lanes.lane_id = undone.lane_id AND cleared_lanes.before_seq = undone.after_seq
)
UPDATE lanes SET forgotten_seq = undone.before_seq
FROM undone
WHERE lanes.id = undone.lane_id AND lanes.forgotten_seq = undone.after_seq
RETURNING lanes.id
