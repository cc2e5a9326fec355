-- A claimed run before its next step. No row: another worker has the run. `interrupted`: a message
-- arrived since a scheduled run began. `seen`: the memories that its steps were about.
SELECT curator_runs.*, l.user_id, l.agent_id, l.app_id, l.run_id AS scope_run_id, p.budget,
       curator_runs.origin = 'schedule' AND EXISTS (
           SELECT FROM events e
           WHERE e.lane_id = curator_runs.lane_id AND e.seq > curator_runs.accepted_seq
             AND e.event_type = 'ADD'
       ) AS interrupted,
       (SELECT coalesce(array_agg(centre), '{}') FROM curator_steps s, unnest(s.centres) AS centre
        WHERE s.run_id = curator_runs.id) AS seen,
       (SELECT count(*) FROM suggestions s
        WHERE s.run_id = curator_runs.id AND s.kind = 'DELETE') AS deletes
FROM curator_runs
JOIN lanes l ON l.id = curator_runs.lane_id
JOIN projects p ON p.id = curator_runs.project_id
WHERE {claimed.sql}
