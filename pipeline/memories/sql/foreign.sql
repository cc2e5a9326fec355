-- Owed memories in the vectors of another model than the live index's own, for one who serves it:
-- written by processes from before a switch. A shadow's stay as they are.
SELECT m.*, s.name AS speaker
FROM memories m
    LEFT JOIN events e ON e.id = m.event_id
    LEFT JOIN messages s
        ON s.lane_id = e.lane_id AND s.seq = e.seq AND s.ordinal = m.message_ordinal
WHERE m.owed
  AND m.state = 'ACTIVE'
  -- Two ranges of an index, of which the model's own are left out.
  AND (m.embedder < :embedder OR m.embedder > :embedder)
  AND NOT EXISTS (SELECT FROM shadows s WHERE s.id = m.project_id)
  AND EXISTS (SELECT FROM vector_indexes i WHERE i.state = 'LIVE' AND i.name = :index)
LIMIT :limit
