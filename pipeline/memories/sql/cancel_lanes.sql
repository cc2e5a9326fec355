-- End all open events of these lanes, which the caller has locked: CANCELLED without effects,
-- SUCCEEDED if the batch was applied. Busy lanes are queued again, and the raised fence makes the
-- current activation fail with LaneLost. `cancelled`: number of CANCELLED events of all lanes.
WITH open AS (
    SELECT e.id, e.lane_id, {is_applied.sql} AS applied
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
RETURNING id, fence, (SELECT count(*) FROM open WHERE NOT applied) AS cancelled
