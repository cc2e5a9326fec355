-- Keep the first events of a batch, up to a seq; the others return to the queue.
WITH locked AS MATERIALIZED (
    SELECT id FROM lanes
    WHERE {fence.sql}
      AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
    FOR NO KEY UPDATE
), returned AS (
    UPDATE events SET status = 'PENDING', batch_id = NULL, started_at = NULL
    FROM locked
    WHERE events.batch_id = CAST(:batch_id AS uuid) AND events.status = 'RUNNING'
      AND events.seq > CAST(:last_seq AS bigint)
)
SELECT id FROM locked
