-- Entries of lanes that an earlier release sealed: the seals that an erasure marked, and the events
-- whose last seal is not that of their last replay.
SELECT 'erasure' AS kind, s.lane_id, s.erased_by AS row_id, 0 AS row_no,
       array_agg(s.number ORDER BY s.number) AS numbers
FROM seals s
WHERE s.lane_id = ANY (CAST(:lane_ids AS uuid[])) AND s.erased_by IS NOT NULL
GROUP BY s.lane_id, s.erased_by
UNION ALL
SELECT 'replay', s.lane_id, s.row_id,
       greatest(max(s.row_no), CASE WHEN e.completed_at IS NULL THEN e.replays ELSE 0 END), NULL
FROM seals s
CROSS JOIN LATERAL (SELECT * FROM events WHERE id = s.row_id OFFSET 0) e
WHERE s.lane_id = ANY (CAST(:lane_ids AS uuid[])) AND s.kind = 'event' AND s.erased_by IS NULL
GROUP BY s.lane_id, s.row_id, e.completed_at, e.replays
HAVING count(*) > 1 OR (e.completed_at IS NULL AND e.replays > max(s.row_no))
ORDER BY 2, 1, 3
