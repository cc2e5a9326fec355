-- Return a batch to its queue. A failed batch is retried with half the width, until the event that
-- fails is alone. A suspect stays one (`attempts`). The cost so far stays on the events' receipts.
WITH moved AS (
    UPDATE lanes SET
        state = 'QUEUED', stage = 'extract', batch_id = NULL,
        width = CAST(:width AS smallint),
        due_at = now() + CAST(:grace AS interval),
        owner = NULL, attempts = CAST(:attempts AS smallint), waits = 0, wait_code = NULL
    WHERE {fence.sql}
      AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
    RETURNING id
), returned AS (
    UPDATE events SET
        status = 'PENDING', batch_id = NULL
    FROM moved
    WHERE events.batch_id = CAST(:batch_id AS uuid) AND events.status = 'RUNNING'
)
SELECT id FROM moved
