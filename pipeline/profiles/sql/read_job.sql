-- A job with its events, in their order. An erased event has lost its user.
SELECT j.operation, j.event_ids, array_agg(l.user_id ORDER BY source.place) AS users,
       array_agg(e.status ORDER BY source.place) AS statuses
FROM profile_jobs j
CROSS JOIN LATERAL unnest(j.event_ids) WITH ORDINALITY AS source (id, place)
LEFT JOIN events e ON e.id = source.id
LEFT JOIN lanes l ON l.id = e.lane_id
WHERE j.project_id = CAST(:project_id AS uuid) AND j.id = CAST(:job_id AS uuid)
GROUP BY j.id
