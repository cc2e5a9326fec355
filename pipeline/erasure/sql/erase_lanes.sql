-- Only numbers are left of erased events. They move to the end of the project's own lane, so that
-- the books still balance and nothing links them to the owner. Running events end: SUCCEEDED if
-- their memories were stored, else CANCELLED. The lanes, locked by the caller, lose their ids,
-- start again at 0 and raise their fence above any that a worker still has. The erasure's own event
-- is added last.
WITH theirs AS (
    SELECT e.id, row_number() OVER (ORDER BY e.created_at, e.id) AS place, EXISTS (
        SELECT FROM stage_runs r WHERE r.batch_id = e.batch_id AND r.stage = 'apply'
    ) AS applied
    FROM events e
    WHERE e.project_id = CAST(:project_id AS uuid) AND e.lane_id = ANY (CAST(:lane_ids AS uuid[]))
), numbers AS (
    SELECT own.accepted_seq AS before, (
        SELECT coalesce(sum(accepted_seq), 0) FROM lanes WHERE id = ANY (CAST(:lane_ids AS uuid[]))
    ) AS moved
    FROM lanes own WHERE own.id = CAST(:own_lane_id AS uuid)
), ended AS (
    UPDATE events SET
        lane_id = CAST(:own_lane_id AS uuid), seq = numbers.before + theirs.place,
        status = CASE WHEN status NOT IN ('PENDING', 'RUNNING') THEN status
                      WHEN applied THEN 'SUCCEEDED' ELSE 'CANCELLED' END,
        failure_code = CASE WHEN status IN ('PENDING', 'RUNNING') AND NOT applied
                            THEN 'CANCELLED' ELSE failure_code END,
        options = '{}', failure_detail = NULL, note = CAST(:note AS text),
        completed_at = coalesce(completed_at, now()), erased_at = now()
    FROM theirs, numbers
    WHERE events.id = theirs.id
    RETURNING events.id
), outputs AS (
    UPDATE stage_runs SET output = NULL, lane_id = CAST(:own_lane_id AS uuid)
    WHERE lane_id = ANY (CAST(:lane_ids AS uuid[]))
    RETURNING stage
), emptied AS (
    UPDATE lanes SET
        user_id = NULL, agent_id = NULL, app_id = NULL, run_id = NULL, temporary = false,
        accepted_seq = 0, settled_seq = 0, forgotten_seq = 0, state = 'IDLE', stage = 'extract', batch_id = NULL,
        fence = fence + 1, epoch = epoch + 1, owner = NULL, due_at = NULL, attempts = 0,
        waits = 0, wait_code = NULL, wait_cause = NULL, width = NULL
    WHERE id = ANY (CAST(:lane_ids AS uuid[]))
), cleared AS (
    DELETE FROM cleared_lanes WHERE lane_id = ANY (CAST(:lane_ids AS uuid[]))
), own AS (
    UPDATE lanes SET
        accepted_seq = before + moved + 1,
        settled_seq = CASE state WHEN 'IDLE' THEN before + moved + 1 ELSE settled_seq END
    FROM numbers WHERE lanes.id = CAST(:own_lane_id AS uuid)
    RETURNING lanes.accepted_seq
), told AS (
    INSERT INTO events (
        id, project_id, lane_id, seq, event_type, status, options, tokens, started_at
    )
    SELECT CAST(:event_id AS uuid), CAST(:project_id AS uuid), CAST(:own_lane_id AS uuid),
           accepted_seq, 'DELETE_USER', 'RUNNING', '{}', 0, now()
    FROM own
)
SELECT (SELECT count(*) FROM ended) AS events, (SELECT count(*) FROM outputs) AS stage_outputs
