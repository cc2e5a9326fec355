-- Their vectors have left the index. The first time, end the event and schedule one more pass; the
-- second time, the erasure is complete and the ids of the memories are deleted, too.
WITH ended AS (
    UPDATE events SET
        status = 'SUCCEEDED', completed_at = now(),
        note = replace(CAST(:note AS text), '{event_id}', CAST(id AS text))
    WHERE id = ANY (CAST(:event_ids AS uuid[])) AND status = 'RUNNING'
    RETURNING id
), due AS (
    SELECT ids.id, ended.id IS NOT NULL AS again
    FROM unnest(CAST(:event_ids AS uuid[])) AS ids (id) LEFT JOIN ended USING (id)
)
UPDATE erasures SET
    memory_ids = CASE WHEN due.again THEN memory_ids END,
    -- The second pass asks every collection of the index.
    owner_hashes = NULL,
    due_at = CASE WHEN due.again THEN now() + CAST(:again AS interval) END
FROM due WHERE erasures.event_id = due.id AND due_at IS NOT NULL
