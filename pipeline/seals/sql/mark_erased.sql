-- Mark the seals of rows that an erasure deletes: those of its lanes, of receipt lines about its
-- memories, and of questions that it withdraws. Their digests stay in the chain, without salt.
WITH mine AS (
    SELECT lane_id, number FROM seals WHERE lane_id = ANY (CAST(:lane_ids AS uuid[]))
), lines AS (
    SELECT s.lane_id, s.number
    FROM (
        SELECT DISTINCT h.event_id FROM memory_history h
        WHERE h.memory_id = ANY (CAST(:memory_ids AS uuid[])) AND h.event_id IS NOT NULL
    ) e
    CROSS JOIN LATERAL (
        SELECT r.ordinal FROM receipts r
        WHERE r.event_id = e.event_id AND r.memory_id = ANY (CAST(:memory_ids AS uuid[])) OFFSET 0
    ) r
    CROSS JOIN LATERAL (
        SELECT lane_id, number FROM seals
        WHERE row_id = e.event_id AND kind = 'receipt' AND row_no = r.ordinal OFFSET 0
    ) s
), questions AS (
    SELECT s.lane_id, s.number
    FROM unnest(CAST(:event_ids AS uuid[])) AS t (id) CROSS JOIN LATERAL (
        SELECT lane_id, number FROM seals
        WHERE row_id = t.id AND kind IN ('event', 'receipt') OFFSET 0
    ) s
), gone AS MATERIALIZED (
    SELECT * FROM mine UNION SELECT * FROM lines UNION SELECT * FROM questions
)
UPDATE seals SET erased_by = CAST(:event_id AS uuid), salt = NULL
FROM gone
WHERE seals.lane_id = gone.lane_id AND seals.number = gone.number
  AND seals.project_id = CAST(:project_id AS uuid)
  AND seals.erased_by IS NULL AND seals.kind NOT IN ('erasure', 'replay')
RETURNING seals.lane_id, seals.number
