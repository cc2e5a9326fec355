-- What the index under construction does not hold as it is. A shadow's memories stay in the vectors
-- of its own model; they are owed once the index is live.
SELECT m.*
FROM memories m LEFT JOIN rebuilt r ON r.memory_id = m.id
WHERE m.id > CAST(:after AS uuid)
  AND r.version IS DISTINCT FROM m.version
  AND (m.state = 'ACTIVE' OR r.memory_id IS NOT NULL)
  AND NOT EXISTS (SELECT FROM shadows s WHERE s.id = m.project_id)
ORDER BY m.id
LIMIT :limit
