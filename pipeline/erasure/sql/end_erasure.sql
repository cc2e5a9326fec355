-- Its vectors have left the index. The first time, end the event and schedule one more pass; the
-- second time, the erasure is complete and the ids of the memories are deleted, too.
WITH ended AS (
    UPDATE events SET status = 'SUCCEEDED', completed_at = now(), note = CAST(:note AS text)
    WHERE id = CAST(:event_id AS uuid) AND status = 'RUNNING'
    RETURNING id
)
UPDATE erasures SET
    memory_ids = CASE WHEN EXISTS (SELECT FROM ended) THEN memory_ids END,
    due_at = CASE WHEN EXISTS (SELECT FROM ended) THEN now() + CAST(:again AS interval) END
WHERE event_id = CAST(:event_id AS uuid) AND due_at IS NOT NULL
