-- Put the batches of these events back at the ends of their lanes, for their graph alone; the
-- caller has locked the lanes. Each batch keeps its id and its outputs, except that of `relate`. It
-- goes back as a whole, because one model call covered all of its events. A batch that was deleted
-- with its scope stays: behind `forgotten_seq`, its messages would be turns again.
WITH again AS (
    SELECT e.id, e.lane_id, e.batch_id, e.seq,
           l.accepted_seq + row_number() OVER (PARTITION BY e.lane_id ORDER BY e.seq) AS new_seq
    FROM events e JOIN lanes l ON l.id = e.lane_id
    WHERE e.status = 'SUCCEEDED' AND e.graph_status IN ('FAILED', 'PARTIAL') AND e.erased_at IS NULL
      AND e.seq > l.forgotten_seq
      AND e.batch_id IN (
        SELECT batch_id FROM events WHERE id = ANY (CAST(:event_ids AS uuid[])))
      -- Old outputs may have been deleted: see drop_outputs.sql.
      AND NOT EXISTS (
          SELECT FROM stage_runs r
          WHERE r.batch_id = e.batch_id AND r.stage <> 'relate' AND r.output IS NULL)
), {renumber.sql}, forgotten AS (
    DELETE FROM stage_runs WHERE stage = 'relate' AND batch_id IN (SELECT batch_id FROM again)
), event AS (
    UPDATE events SET
        seq = again.new_seq, status = 'PENDING', failure_detail = NULL, graph_status = NULL,
        completed_at = NULL, replays = replays + 1, replayed_at = now()
    FROM again WHERE events.id = again.id
)
SELECT a.id, a.lane_id, a.seq AS former_seq, a.new_seq AS seq, l.fence,
       a.new_seq = l.settled_seq + 1 OR (l.gathers AND a.new_seq = l.accepted_seq) AS woken
FROM again a JOIN lane l ON l.id = a.lane_id
ORDER BY a.lane_id, a.new_seq
