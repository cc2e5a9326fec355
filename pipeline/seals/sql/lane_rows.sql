-- The next events and memories of queued lanes.
WITH lane AS MATERIALIZED (
    SELECT lane_id, seq, memory_id
    FROM unnest(CAST(:lane_ids AS uuid[]), CAST(:seqs AS bigint[]), CAST(:memory_ids AS uuid[]))
        AS t (lane_id, seq, memory_id)
)
SELECT 'event' AS kind, lane.lane_id, e.id AS row_id, e.seq
FROM lane CROSS JOIN LATERAL (
    SELECT id, seq FROM events
    WHERE lane_id = lane.lane_id AND seq > lane.seq ORDER BY seq LIMIT CAST(:limit AS integer)
) e
UNION ALL
SELECT 'memory', lane.lane_id, m.id, 0
FROM lane CROSS JOIN LATERAL (
    SELECT id FROM memories
    WHERE lane_id = lane.lane_id AND id > lane.memory_id ORDER BY id LIMIT CAST(:limit AS integer)
) m
