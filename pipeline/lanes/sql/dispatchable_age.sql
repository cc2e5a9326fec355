-- Age in seconds of the oldest event of the lanes that wait for a worker, 0 without one.
-- Lanes that wait for a provider, a rate limit or further turns do not count: more workers would not
-- help them. An autoscaler runs this statement, and /metrics shows its result.
-- The work follows the lanes with open events: those queued longest are read, at most 2,000.
SELECT coalesce(ceil(max(extract(epoch FROM now() - oldest.since))), 0)::bigint AS seconds
FROM (
    SELECT id, settled_seq FROM lanes
    WHERE due_at IS NOT NULL AND state = 'QUEUED'
    ORDER BY due_at
    LIMIT 2000
) queued, LATERAL (
    SELECT coalesce(e.replayed_at, e.created_at) AS since FROM events e
    WHERE e.lane_id = queued.id AND e.seq > queued.settled_seq
    ORDER BY e.seq
    LIMIT 1
) oldest
