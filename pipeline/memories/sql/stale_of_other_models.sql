-- Stale memories whose vectors are from another model than that of the live index: processes of the
-- model before a switch wrote them. Empty if :index is not the live one. Replays are left out.
SELECT m.*, s.name AS author
FROM memories m
    LEFT JOIN events e ON e.id = m.event_id AND e.lane_id = m.lane_id
    LEFT JOIN messages s
        ON s.lane_id = e.lane_id AND s.seq = e.seq AND s.ordinal = m.message_ordinal
WHERE m.owed
  AND m.state = 'ACTIVE'
  -- Written as two ranges, so that the index on (embedder) is used.
  AND (m.embedder < :embedder OR m.embedder > :embedder)
  AND NOT EXISTS (SELECT FROM shadows s WHERE s.id = m.project_id)
  AND EXISTS (SELECT FROM vector_indexes i WHERE i.state = 'LIVE' AND i.name = :index)
LIMIT :limit
