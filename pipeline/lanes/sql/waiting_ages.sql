-- Age in seconds of the oldest event of the lanes that wait, by the code of what they wait for.
-- The lanes that are due first are read, at most 5,000.
SELECT waiting.wait_code AS reason,
       ceil(max(extract(epoch FROM now() - oldest.since)))::bigint AS seconds
FROM (
    SELECT id, settled_seq, wait_code FROM lanes
    WHERE due_at IS NOT NULL AND state = 'WAITING'
    ORDER BY due_at
    LIMIT 5000
) waiting, LATERAL (
    SELECT coalesce(e.replayed_at, e.created_at) AS since FROM events e
    WHERE e.lane_id = waiting.id AND e.seq > waiting.settled_seq
    ORDER BY e.seq
    LIMIT 1
) oldest
GROUP BY waiting.wait_code
