-- All events of a claim were cancelled: the lane continues with the first pending event, or becomes
-- IDLE. accepted_seq is read under the row's lock, as in end_batch.sql.
WITH next AS (
    SELECT min(e.seq) AS seq FROM lanes l JOIN events e ON e.lane_id = l.id
    WHERE l.id = CAST(:lane_id AS uuid) AND e.seq > l.settled_seq AND e.status = 'PENDING'
), done AS (
    SELECT coalesce(seq - 1, CAST(:accepted_seq AS bigint)) AS seq FROM next
)
UPDATE lanes SET
    settled_seq = done.seq,
    state = CASE WHEN accepted_seq > done.seq THEN 'QUEUED' ELSE 'IDLE' END,
    due_at = CASE WHEN accepted_seq > done.seq THEN now() + CAST(:grace AS interval) END,
    stage = 'extract', batch_id = NULL, owner = NULL, attempts = 0, waits = 0, wait_code = NULL,
    width = nullif(least(width * 2, CAST(:full_width AS integer)), CAST(:full_width AS integer))
FROM done
WHERE {fence.sql}
RETURNING state, coalesce(normal_seq <= lanes.settled_seq, false) AS low
