-- Hide all messages so far in these lanes, which the caller has locked. Each deletion records the
-- range it hid, so that an undo can show exactly that range again. A lane without new messages
-- since the last deletion is left out, so the ranges of a lane are adjacent and never overlap.
WITH hidden AS (
    UPDATE lanes SET forgotten_seq = before.accepted_seq
    FROM lanes before
    WHERE lanes.id = ANY (CAST(:lane_ids AS uuid[])) AND before.id = lanes.id
      AND EXISTS (
          SELECT FROM events e
          WHERE e.lane_id = before.id AND e.seq > before.forgotten_seq AND e.event_type = 'ADD')
    RETURNING lanes.id, before.forgotten_seq AS before_seq, lanes.forgotten_seq AS after_seq
)
INSERT INTO cleared_lanes (event_id, lane_id, before_seq, after_seq)
SELECT CAST(:event_id AS uuid), id, before_seq, after_seq FROM hidden
