-- The last seals of these lanes, up to a number of each.
SELECT s.lane_id, s.number, s.kind, s.row_id, s.row_no, s.digest, s.link
FROM unnest(CAST(:lane_ids AS uuid[])) AS t (lane_id) CROSS JOIN LATERAL (
    SELECT * FROM seals WHERE lane_id = t.lane_id ORDER BY number DESC LIMIT CAST(:limit AS integer)
) s
ORDER BY s.lane_id, s.number
