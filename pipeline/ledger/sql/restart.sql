-- A batch goes back to its queue, to be frozen anew: half as wide where it could not be done, until the
-- event that breaks it stands alone.
WITH held AS (
    UPDATE lanes SET
        state = 'QUEUED', stage = 'extract', batch_id = NULL,
        width = CAST(:width AS smallint),
        due_at = now() + CAST(:grace AS interval),
        owner = NULL, attempts = 0, waits = 0, wait_code = NULL
    WHERE id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint) AND state = 'RUNNING'
    RETURNING id
), returned AS (
    UPDATE events SET status = 'PENDING', batch_id = NULL
    FROM held
    WHERE events.batch_id = CAST(:batch_id AS uuid) AND events.status = 'RUNNING'
)
SELECT count(*) FROM held
