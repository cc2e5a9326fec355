-- Put ended events back at the ends of their lanes, in their old order; the caller has locked the
-- lanes. Their messages get the new seq, too, behind all accepted since. An event that was deleted
-- with its scope stays: behind `forgotten_seq`, its messages would be turns again.
WITH again AS (
    SELECT e.id, e.lane_id, e.seq, e.replays + 1 AS new_replays,
           l.accepted_seq + row_number() OVER (PARTITION BY e.lane_id ORDER BY e.seq) AS new_seq
    FROM events e JOIN lanes l ON l.id = e.lane_id
    WHERE e.id = ANY (CAST(:event_ids AS uuid[])) AND e.status IN ('FAILED', 'CANCELLED')
      AND e.erased_at IS NULL AND e.seq > l.forgotten_seq
), {renumber.sql}, event AS (
    UPDATE events SET
        seq = again.new_seq, status = 'PENDING', batch_id = NULL,
        failure_code = NULL, failure_detail = NULL, graph_status = NULL, note = NULL,
        started_at = NULL, completed_at = NULL, undone_at = NULL,
        replays = replays + 1, replayed_at = now(),
        -- An imported event may have none.
        options = jsonb_set(options, '{instructions}',
                            coalesce(options -> 'instructions', '{}') || CAST(:instructions AS jsonb)),
        tokens = coalesce(CAST(:tokens AS integer), tokens)
    FROM again WHERE events.id = again.id
)
SELECT a.id, a.lane_id, a.new_seq AS seq, a.new_replays AS replays, l.fence,
       a.new_seq = l.settled_seq + 1 OR (l.gathers AND a.new_seq = l.accepted_seq) AS woken
FROM again a JOIN lane l ON l.id = a.lane_id
ORDER BY a.lane_id, a.new_seq
