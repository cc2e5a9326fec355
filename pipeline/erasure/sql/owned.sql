-- The rows of an owner that an erasure locks, as common table expressions: `mine`, `other`, `key`,
-- `run` and `memory`. The lanes in the project and in its replays are found by the index of the
-- owner's kind; the branches of the other kinds are not executed. OFFSET 0 keeps each a look-up: a
-- generic plan could read the table.
home AS MATERIALIZED (
    SELECT CAST(:project_id AS uuid) AS id
    UNION ALL
    SELECT id FROM shadows WHERE project_id = CAST(:project_id AS uuid)
), theirs AS MATERIALIZED (
    SELECT l.* FROM home CROSS JOIN LATERAL (
        SELECT id, project_id, temporary, coalesce(user_id, agent_id, app_id, run_id) AS name, run_id
        FROM lanes WHERE project_id = home.id AND user_id = CAST(:owner_id AS text) OFFSET 0
    ) l WHERE CAST(:kind AS text) = 'user'
    UNION ALL
    SELECT l.* FROM home CROSS JOIN LATERAL (
        SELECT id, project_id, temporary, coalesce(user_id, agent_id, app_id, run_id) AS name, run_id
        FROM lanes WHERE project_id = home.id AND agent_id = CAST(:owner_id AS text) OFFSET 0
    ) l WHERE CAST(:kind AS text) = 'agent'
    UNION ALL
    SELECT l.* FROM home CROSS JOIN LATERAL (
        SELECT id, project_id, temporary, coalesce(user_id, agent_id, app_id, run_id) AS name, run_id
        FROM lanes WHERE project_id = home.id AND app_id = CAST(:owner_id AS text) OFFSET 0
    ) l WHERE CAST(:kind AS text) = 'app'
    UNION ALL
    SELECT l.* FROM home CROSS JOIN LATERAL (
        SELECT id, project_id, temporary, coalesce(user_id, agent_id, app_id, run_id) AS name, run_id
        FROM lanes WHERE project_id = home.id AND run_id = CAST(:owner_id AS text) OFFSET 0
    ) l WHERE CAST(:kind AS text) = 'run'
), mine AS MATERIALIZED (
    SELECT * FROM theirs WHERE project_id = CAST(:project_id AS uuid)
), source AS MATERIALIZED (
    -- As `sources_of` in pipeline/erasure/locking.py.
    SELECT id FROM mine
    UNION ALL
    SELECT CAST(:project_id AS uuid) WHERE EXISTS (SELECT FROM mine)
), naming AS MATERIALIZED (
    -- Questions that name the owner, found by the names: many other events may be open.
    SELECT lane_id, completed_at FROM events e
    WHERE owners_named(e.project_id, e.options) @> ARRAY[CAST(:owner AS text)]
      AND e.event_type <> 'ADD' AND e.event_type <> 'DRY_RUN'
), question AS MATERIALIZED (
    -- The lanes of open questions that the erasure withdraws: those with a saved answer that was
    -- made of its lanes, and those that name the owner.
    SELECT e.lane_id
    FROM answer_sources s CROSS JOIN LATERAL (
        SELECT lane_id, completed_at FROM events WHERE batch_id = s.batch_id OFFSET 0
    ) e
    WHERE s.lane_id = ANY (ARRAY(SELECT id FROM source)) AND e.completed_at IS NULL
    UNION
    SELECT lane_id FROM naming WHERE completed_at IS NULL
), other AS (
    SELECT id FROM theirs WHERE project_id <> CAST(:project_id AS uuid)
    UNION
    SELECT lane_id FROM question WHERE lane_id <> ALL (ARRAY(SELECT id FROM mine))
), key AS (
    SELECT k.key FROM idempotency_keys k
    WHERE k.event_id = ANY (ARRAY(
        SELECT id FROM events WHERE lane_id = ANY (ARRAY(SELECT id FROM mine))))
), named AS MATERIALIZED (
    SELECT DISTINCT project_id, name FROM theirs
), run AS (
    SELECT run_id FROM theirs WHERE temporary
    UNION
    SELECT CAST(:owner_id AS text) WHERE CAST(:kind AS text) = 'run'
), memory AS (
    SELECT id FROM memories WHERE lane_id = ANY (ARRAY(SELECT id FROM mine))
)
