-- Age in seconds of the oldest event of the lanes that wait for a worker, 0 without one.
-- Lanes that wait for a provider, a rate limit or further turns do not count: more workers would not
-- help them. A lane whose wait has just ended keeps its `wait_code` until a stage succeeds: it counts
-- from the time at which its hint is overdue, because its event may be as old as the outage.
-- An autoscaler runs this statement, and /metrics shows its result.
-- The work follows the lanes with open events: those queued longest are read, at most 2,000.
SELECT greatest(coalesce(ceil(max(extract(epoch FROM now() - oldest.since))), 0), 0)::bigint
    AS seconds
FROM (
    SELECT id, settled_seq, CASE WHEN wait_code IS NOT NULL THEN due_at END AS overdue_at
    FROM lanes
    WHERE due_at IS NOT NULL AND state = 'QUEUED'
    ORDER BY due_at
    LIMIT 2000
) queued, LATERAL (
    SELECT greatest(coalesce(e.replayed_at, e.created_at), queued.overdue_at) AS since
    FROM events e
    WHERE e.lane_id = queued.id AND e.seq > queued.settled_seq
    ORDER BY e.seq
    LIMIT 1
) oldest
