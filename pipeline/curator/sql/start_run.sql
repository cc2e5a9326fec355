-- Create a run of a scope, unless it has an open one. Returns the id of the open one in any case.
-- No row: there is no such scope.
WITH lane AS (
    SELECT id, project_id, accepted_seq FROM lanes
    WHERE id = CAST(:lane_id AS uuid) AND project_id = CAST(:project_id AS uuid)
), created AS (
    INSERT INTO curator_runs (
        id, project_id, lane_id, origin, due_at, accepted_seq, max_suggestions, max_tokens
    )
    SELECT CAST(:run_id AS uuid), project_id, id, 'request', now(), accepted_seq,
           CAST(:max_suggestions AS integer), CAST(:max_tokens AS integer)
    FROM lane
    ON CONFLICT (lane_id) WHERE completed_at IS NULL DO NOTHING
    RETURNING id
)
SELECT coalesce(
    (SELECT id FROM created),
    (SELECT r.id FROM curator_runs r WHERE r.lane_id = lane.id AND r.completed_at IS NULL)
) AS id
FROM lane
