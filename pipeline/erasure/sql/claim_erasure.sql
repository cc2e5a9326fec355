-- The next erasure whose vectors are to be looked for, for one looker at a time.
UPDATE erasures SET due_at = now() + CAST(:lease AS interval)
WHERE event_id = (
    SELECT event_id FROM erasures WHERE due_at <= now()
    ORDER BY due_at LIMIT 1
    FOR UPDATE SKIP LOCKED
)
RETURNING event_id, memory_ids, counts -> 'vectors' AS vectors
