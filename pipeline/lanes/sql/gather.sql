-- The batch returns to its queue, and its events wait for further turns. The next add, or the
-- deadline, queues the lane again. An add that arrived since the claim is considered at once.
WITH moved AS (
    UPDATE lanes SET
        state = CASE WHEN accepted_seq > CAST(:accepted_seq AS bigint) THEN 'QUEUED'
                     ELSE 'WAITING' END,
        stage = 'extract', batch_id = NULL,
        due_at = now() + CASE WHEN accepted_seq > CAST(:accepted_seq AS bigint)
                              THEN CAST(:grace AS interval) ELSE CAST(:delay AS interval) END,
        owner = NULL, attempts = 0, waits = 0,
        wait_code = CAST(:code AS text), wait_cause = NULL
    WHERE {fence.sql}
      AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
    RETURNING state, coalesce(normal_seq <= settled_seq, false) AS low
), returned AS (
    UPDATE events SET status = 'PENDING', batch_id = NULL, started_at = NULL
    FROM moved
    WHERE events.batch_id = CAST(:batch_id AS uuid) AND events.status = 'RUNNING'
)
SELECT state, low FROM moved
