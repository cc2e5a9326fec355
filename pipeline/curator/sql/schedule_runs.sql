-- Create runs of scopes whose projects have a schedule: no open work, no new message for the idle
-- time, memories that changed since the last run, and the last run long enough ago.
INSERT INTO curator_runs (
    id, project_id, lane_id, origin, due_at, accepted_seq, max_suggestions, max_tokens
)
SELECT gen_random_uuid(), l.project_id, l.id, 'schedule', now(), l.accepted_seq,
       CAST(:max_suggestions AS integer), CAST(:max_tokens AS integer)
FROM projects p
JOIN lanes l ON l.project_id = p.id AND l.state = 'IDLE'
LEFT JOIN LATERAL (
    SELECT r.created_at, r.completed_at FROM curator_runs r
    WHERE r.lane_id = l.id ORDER BY r.created_at DESC LIMIT 1
) last ON true
WHERE p.curator IS NOT NULL
  AND (last.created_at IS NULL OR (
      last.completed_at IS NOT NULL
      AND last.created_at < now() - (p.curator ->> 'every_hours')::float8 * interval '1 hour'))
  AND NOT EXISTS (
      SELECT FROM events e WHERE e.lane_id = l.id AND e.seq = l.accepted_seq
      AND e.created_at > now() - (p.curator ->> 'idle_minutes')::float8 * interval '1 minute')
  AND EXISTS (
      SELECT FROM memories m WHERE m.lane_id = l.id AND m.state = 'ACTIVE'
      AND (last.created_at IS NULL OR m.updated_at > last.created_at))
LIMIT CAST(:limit AS integer)
ON CONFLICT (lane_id) WHERE completed_at IS NULL DO NOTHING
