-- Erasures that deleted rows of this lane and have no seal of their own yet.
SELECT 'erasure' AS kind, s.erased_by AS row_id, 0 AS row_no, CAST(NULL AS bytea) AS salt,
       sha256(uuid_send(s.erased_by)) AS digest
FROM seals s
WHERE s.lane_id = CAST(:lane_id AS uuid) AND s.erased_by IS NOT NULL
  AND NOT EXISTS (
      SELECT FROM seals e
      WHERE e.lane_id = s.lane_id AND e.kind = 'erasure' AND e.row_id = s.erased_by)
GROUP BY s.erased_by
ORDER BY s.erased_by
