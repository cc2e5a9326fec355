-- Lanes that the sweeper should have taken up long ago, and idle lanes with open events.
SELECT (SELECT count(*) FROM lanes
        WHERE due_at < now() - CAST(:overdue AS interval)) AS overdue,
       (SELECT coalesce(extract(epoch FROM now() - min(due_at)), 0)::float8 FROM lanes
        WHERE due_at IS NOT NULL) AS oldest_s,
       (SELECT count(DISTINCT l.id) FROM events e JOIN lanes l ON l.id = e.lane_id
        WHERE e.completed_at IS NULL AND l.state = 'IDLE') AS stranded
