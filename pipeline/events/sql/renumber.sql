-- Move the events of `again`, with their messages, behind all events of their lanes. A lane whose
-- events wait for further turns (GATHERING) is queued: replayed events never wait, nor those before.
lane AS (
    UPDATE lanes SET
        accepted_seq = tail.seq,
        -- A replay has normal priority.
        normal_seq = CASE WHEN normal_seq IS NOT NULL THEN tail.seq END,
        state = CASE WHEN state = 'IDLE' OR state = 'WAITING' AND wait_code = 'GATHERING'
                     THEN 'QUEUED' ELSE state END,
        due_at = CASE WHEN state = 'WAITING' AND wait_code = 'GATHERING'
                      THEN now() + CAST(:grace AS interval)
                      ELSE coalesce(due_at, now() + CAST(:grace AS interval)) END
    FROM (SELECT lane_id, max(new_seq) AS seq FROM again GROUP BY lane_id) tail
    WHERE lanes.id = tail.lane_id
    RETURNING lanes.id, lanes.fence, lanes.settled_seq, lanes.accepted_seq,
              lanes.state = 'QUEUED' AND lanes.wait_code IS NOT DISTINCT FROM 'GATHERING' AS gathers
), renumbered AS (
    UPDATE messages SET seq = again.new_seq
    FROM again WHERE messages.lane_id = again.lane_id AND messages.seq = again.seq
)
