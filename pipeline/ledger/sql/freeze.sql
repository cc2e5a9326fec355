-- Fix which events go through the stages together: the longest prefix of the queue with equal
-- options within the width and the token budget; always at least one.
WITH held AS MATERIALIZED (
    SELECT id, settled_seq FROM lanes
    WHERE id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint) AND state = 'RUNNING'
    FOR UPDATE
), queue AS (
    SELECT e.id, e.seq, e.tokens, e.options = first_value(e.options) OVER (ORDER BY e.seq) AS alike
    FROM events e, held
    WHERE e.lane_id = held.id AND e.seq > held.settled_seq AND e.status = 'PENDING'
      AND e.seq <= CAST(:accepted_seq AS bigint)
    ORDER BY e.seq
    LIMIT CAST(:width AS integer)
), prefix AS (
    SELECT id, row_number() OVER upto AS place, sum(tokens) OVER upto AS tokens,
           bool_and(alike) OVER upto AS alike
    FROM queue WINDOW upto AS (ORDER BY seq)
), frozen AS (
    UPDATE events SET batch_id = CAST(:batch_id AS uuid), status = 'RUNNING',
                      started_at = coalesce(started_at, now())
    FROM prefix
    WHERE events.id = prefix.id AND prefix.alike
      AND (prefix.place = 1 OR prefix.tokens <= CAST(:batch_tokens AS integer))
    RETURNING events.id
)
UPDATE lanes SET batch_id = CAST(:batch_id AS uuid)
FROM held
WHERE lanes.id = held.id AND EXISTS (SELECT FROM frozen)
RETURNING lanes.batch_id
