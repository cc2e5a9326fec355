-- Show the turns again that a delete_all hid; the caller has locked its lanes. If a later
-- delete_all of the lane is still in effect, its range is extended by this one: undoing it then
-- shows all of them.
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
