-- The index holds nothing of it now. The first time this ends the event, and the index is to be looked
-- at once more; the second time nothing is left to do, and not even the memories' ids are kept.
WITH ended AS (
    UPDATE events SET status = 'SUCCEEDED', completed_at = now(), note = CAST(:note AS text)
    WHERE id = CAST(:event_id AS uuid) AND status = 'RUNNING'
    RETURNING id
)
UPDATE erasures SET
    memory_ids = CASE WHEN EXISTS (SELECT FROM ended) THEN memory_ids END,
    due_at = CASE WHEN EXISTS (SELECT FROM ended) THEN now() + CAST(:again AS interval) END
WHERE event_id = CAST(:event_id AS uuid) AND due_at IS NOT NULL
