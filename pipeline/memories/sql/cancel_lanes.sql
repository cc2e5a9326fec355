-- End all that is open in these lanes, which are locked by now: what has had no effect is cancelled,
-- what has had it is done. A lane that was at work starts again with nothing to do, and the raised
-- fence refuses whoever works on it.
WITH open AS (
    SELECT e.id, e.lane_id, EXISTS (
        SELECT FROM stage_runs r WHERE r.batch_id = e.batch_id AND r.stage = 'apply'
    ) AS applied
    FROM lanes l
    JOIN events e ON e.lane_id = l.id AND e.seq > l.settled_seq
    WHERE l.id = ANY (CAST(:lane_ids AS uuid[])) AND l.state <> 'IDLE'
      AND e.status IN ('PENDING', 'RUNNING')
), ended AS (
    UPDATE events SET
        status = CASE WHEN open.applied THEN 'SUCCEEDED' ELSE 'CANCELLED' END,
        failure_code = CASE WHEN NOT open.applied THEN 'CANCELLED' END,
        failure_detail = CASE WHEN NOT open.applied THEN CAST(:why AS text) END,
        completed_at = now()
    FROM open WHERE events.id = open.id
)
UPDATE lanes SET
    state = 'QUEUED', stage = 'extract', batch_id = NULL, fence = fence + 1,
    due_at = now() + CAST(:grace AS interval),
    owner = NULL, attempts = 0, waits = 0, wait_code = NULL
WHERE id IN (SELECT lane_id FROM open)
RETURNING id, fence
