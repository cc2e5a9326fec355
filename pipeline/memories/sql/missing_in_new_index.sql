-- Memories that are missing or outdated in the index under construction. Replays keep the vectors
-- of their own model; their rows become stale when the index goes live.
SELECT m.*, s.name AS author
FROM memories m
    LEFT JOIN rebuilt r ON r.memory_id = m.id
    LEFT JOIN events e ON e.id = m.event_id AND e.lane_id = m.lane_id
    LEFT JOIN messages s
        ON s.lane_id = e.lane_id AND s.seq = e.seq AND s.ordinal = m.message_ordinal
WHERE m.id > CAST(:after AS uuid)
  AND r.version IS DISTINCT FROM m.version
  AND (m.state = 'ACTIVE' OR r.memory_id IS NOT NULL)
  AND NOT EXISTS (SELECT FROM shadows s WHERE s.id = m.project_id)
ORDER BY m.id
LIMIT :limit
