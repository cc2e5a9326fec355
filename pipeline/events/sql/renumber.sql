-- Move the events of `again`, with their messages, behind all events of their lanes.
lane AS (
    UPDATE lanes SET
        accepted_seq = tail.seq,
        state = CASE state WHEN 'IDLE' THEN 'QUEUED' ELSE state END,
        due_at = coalesce(due_at, now() + CAST(:grace AS interval))
    FROM (SELECT lane_id, max(new_seq) AS seq FROM again GROUP BY lane_id) tail
    WHERE lanes.id = tail.lane_id
    RETURNING lanes.id, lanes.fence, lanes.settled_seq
), said AS (
    UPDATE messages SET seq = again.new_seq
    FROM again WHERE messages.lane_id = again.lane_id AND messages.seq = again.seq
)
