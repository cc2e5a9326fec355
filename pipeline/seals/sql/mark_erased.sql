-- Mark the seals of rows that an erasure deletes: those of its lanes, of receipt lines about its
-- memories, and of questions that name the owner. Their digests stay in the chain, without salt.
WITH gone AS (
    UPDATE seals SET erased_by = CAST(:event_id AS uuid), salt = NULL
    WHERE erased_by IS NULL AND kind <> 'erasure' AND project_id = CAST(:project_id AS uuid)
      AND (lane_id = ANY (CAST(:lane_ids AS uuid[]))
           OR kind = 'receipt' AND (row_id, row_no) IN (
               SELECT r.event_id, r.ordinal FROM receipts r
               WHERE r.memory_id = ANY (CAST(:memory_ids AS uuid[])) AND r.event_id IN (
                   SELECT h.event_id FROM memory_history h
                   WHERE h.memory_id = ANY (CAST(:memory_ids AS uuid[]))))
           OR kind IN ('event', 'receipt') AND row_id IN (
               SELECT e.id FROM events e
               WHERE e.project_id = CAST(:project_id AS uuid) AND e.event_type <> 'ADD'
                 AND e.erased_at = now()))
    RETURNING lane_id
)
UPDATE seal_heads SET reopened = true WHERE lane_id IN (SELECT lane_id FROM gone)
