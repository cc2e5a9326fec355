-- Cancel an event before it has an effect; the caller has locked its lane. The other events of its
-- batch return to the queue, because saved outputs refer to events by their place in the batch, and
-- the raised fence makes the current worker fail with LaneLost. A RUNNING lane without a batch,
-- which is about to fix one, restarts too.
WITH target AS (
    SELECT e.id, e.lane_id, e.event_type, e.status, e.batch_id,
           {is_applied.sql} AS applied
    FROM events e
    WHERE e.id = CAST(:event_id AS uuid)
), taken AS (
    SELECT * FROM target
    WHERE status IN ('PENDING', 'RUNNING') AND NOT applied AND event_type <> 'DELETE_USER'
), cancelled AS (
    UPDATE events SET
        status = 'CANCELLED', failure_code = 'CANCELLED',
        failure_detail = 'Cancelled by request.', completed_at = now()
    FROM taken WHERE events.id = taken.id
), returned AS (
    UPDATE events SET status = 'PENDING', batch_id = NULL
    FROM taken
    WHERE events.batch_id = taken.batch_id AND events.id <> taken.id AND events.status = 'RUNNING'
), lane AS (
    UPDATE lanes SET
        state = 'QUEUED', stage = 'extract', batch_id = NULL, fence = fence + 1,
        due_at = now() + CAST(:grace AS interval),
        owner = NULL, attempts = 0, waits = 0, wait_code = NULL
    FROM taken
    WHERE lanes.id = taken.lane_id
      AND (taken.status = 'RUNNING' OR (lanes.state = 'RUNNING' AND lanes.batch_id IS NULL))
    RETURNING lanes.id, lanes.fence
)
SELECT a.status, a.lane_id, EXISTS (SELECT FROM taken) AS taken, l.fence
FROM target a LEFT JOIN lane l ON l.id = a.lane_id
