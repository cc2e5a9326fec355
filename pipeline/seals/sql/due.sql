-- Lanes of a project that may have rows without a seal.
SELECT l.id FROM lanes l LEFT JOIN seal_heads h ON h.lane_id = l.id
WHERE l.project_id = CAST(:project_id AS uuid)
  AND (CAST(:since AS timestamptz) IS NULL OR h.reopened)
UNION
SELECT e.lane_id FROM events e
WHERE e.project_id = CAST(:project_id AS uuid) AND e.completed_at > CAST(:since AS timestamptz)
UNION
SELECT m.lane_id FROM memory_history h JOIN memories m ON m.id = h.memory_id
WHERE h.project_id = CAST(:project_id AS uuid) AND h.created_at > CAST(:since AS timestamptz)
ORDER BY 1
