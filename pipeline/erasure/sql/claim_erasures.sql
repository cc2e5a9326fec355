-- Claim the next erasures with vectors to delete; the lease keeps other processes away from them.
-- Ends of sessions and requests are claimed apart, so that no request waits behind sessions.
WITH due AS MATERIALIZED (
    SELECT event_id FROM erasures
    WHERE due_at <= now() AND of_session = CAST(:of_session AS boolean)
    ORDER BY due_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
UPDATE erasures SET due_at = now() + CAST(:lease AS interval)
FROM due WHERE erasures.event_id = due.event_id
RETURNING erasures.event_id, erasures.memory_ids, erasures.owner_hashes,
          erasures.counts -> 'vectors' AS vectors
