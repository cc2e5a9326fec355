-- Create runs of scopes whose projects have a schedule: no open work, no new message for the idle
-- time, memories that changed since the last run, and the last run long enough ago.
-- It looks at scopes whose `next_curation_at` is over, which the end of a batch sets, and moves that
-- on: to the earliest time at which the scope can be due, or to NULL until the next batch. So the
-- work follows the scopes that are due. Of one project at most :limit runs are open.
WITH scheduled AS MATERIALIZED (
    SELECT id, (curator ->> 'every_hours')::float8 * interval '1 hour' AS every,
           greatest(coalesce((curator ->> 'idle_minutes')::float8, 60), 1) * interval '1 minute' AS idle
    FROM projects WHERE curator IS NOT NULL
), due AS MATERIALIZED (
    SELECT s.every, s.idle, lane.*
    FROM scheduled s, LATERAL (
        SELECT l.id, l.project_id, l.state, l.accepted_seq FROM lanes l
        WHERE l.project_id = s.id AND l.next_curation_at <= now()
        ORDER BY l.next_curation_at
        LIMIT greatest(0, CAST(:limit AS integer) - (
            SELECT count(*) FROM curator_runs r WHERE r.project_id = s.id AND r.due_at IS NOT NULL))
        FOR UPDATE SKIP LOCKED
    ) lane
), looked AS MATERIALIZED (
    SELECT d.id, d.project_id, d.accepted_seq, last.created_at AS last_at, CASE
        WHEN d.state <> 'IDLE' OR last.created_at IS NOT NULL AND last.completed_at IS NULL
            THEN now() + d.idle
        WHEN newest.created_at > now() - d.idle THEN newest.created_at + d.idle
        WHEN last.created_at > now() - d.every THEN last.created_at + d.every
    END AS later
    FROM due d
    LEFT JOIN LATERAL (
        SELECT r.created_at, r.completed_at FROM curator_runs r
        WHERE r.lane_id = d.id ORDER BY r.created_at DESC LIMIT 1
    ) last ON true
    LEFT JOIN events newest ON newest.lane_id = d.id AND newest.seq = d.accepted_seq
), moved AS (
    UPDATE lanes SET next_curation_at = looked.later FROM looked WHERE lanes.id = looked.id
)
INSERT INTO curator_runs (
    id, project_id, lane_id, origin, due_at, accepted_seq, max_suggestions, max_tokens
)
SELECT gen_random_uuid(), l.project_id, l.id, 'schedule', now(), l.accepted_seq,
       CAST(:max_suggestions AS integer), CAST(:max_tokens AS integer)
FROM looked l
WHERE l.later IS NULL AND EXISTS (
    SELECT FROM memories m WHERE m.lane_id = l.id AND m.state = 'ACTIVE'
    AND m.updated_at > coalesce(l.last_at, '-infinity'))
ON CONFLICT (lane_id) WHERE completed_at IS NULL DO NOTHING
