-- Claim the next erasure with vectors to delete; the lease keeps other processes away from it.
UPDATE erasures SET due_at = now() + CAST(:lease AS interval)
WHERE event_id = (
    SELECT event_id FROM erasures WHERE due_at <= now()
    ORDER BY due_at LIMIT 1
    FOR UPDATE SKIP LOCKED
)
RETURNING event_id, memory_ids, counts -> 'vectors' AS vectors
