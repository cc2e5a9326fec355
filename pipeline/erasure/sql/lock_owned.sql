-- Lock the project against its deletion, then the rows of an owner in the order of adds: the
-- idempotency keys, the private runs that have not ended, and the lanes with the project's own one,
-- which is made if it is missing. Then the memories, which people change without a lane. Each step
-- waits for the one before, whose rows it counts. Returns the rows as this statement's snapshot has
-- them, and the run that is erased itself, if it is private; `is_over`: its time is over.
WITH {owned.sql}
, project AS MATERIALIZED (
    SELECT id FROM projects WHERE id = CAST(:project_id AS uuid) FOR KEY SHARE
), own AS (
    INSERT INTO lanes (id, project_id, state)
    SELECT CAST(:own_lane_id AS uuid), id, 'IDLE' FROM project
    ON CONFLICT DO NOTHING
    RETURNING id
), locked_key AS MATERIALIZED (
    SELECT k.key FROM idempotency_keys k
    WHERE (SELECT count(*) FROM own) >= 0
      AND k.project_id = CAST(:project_id AS uuid) AND k.key = ANY (ARRAY(SELECT key FROM key))
    ORDER BY k.key
    FOR UPDATE
), locked_run AS MATERIALIZED (
    SELECT p.erasure_id, p.expires_at IS NOT NULL AND p.expires_at <= now() AS is_over,
           p.digest = private_run_digest(
               p.project_id, CASE CAST(:kind AS text) WHEN 'run' THEN CAST(:owner_id AS text) END
           ) AS erased
    FROM private_runs p
    WHERE (SELECT count(*) FROM locked_key) >= 0
      AND p.project_id = CAST(:project_id AS uuid) AND p.privacy <> 'ended'
      AND p.digest = ANY (ARRAY(
          SELECT private_run_digest(CAST(:project_id AS uuid), run_id) FROM run))
    ORDER BY p.digest
    FOR UPDATE
), locked_lane AS MATERIALIZED (
    SELECT l.id FROM lanes l
    WHERE (SELECT count(*) FROM locked_run) >= 0 AND l.id = ANY (ARRAY(
        SELECT id FROM mine UNION ALL SELECT id FROM other
        UNION ALL SELECT CAST(:own_lane_id AS uuid)))
    ORDER BY l.id
    FOR UPDATE
), locked_memory AS MATERIALIZED (
    SELECT m.id FROM memories m
    WHERE (SELECT count(*) FROM locked_lane) >= 0 AND m.id = ANY (ARRAY(SELECT id FROM memory))
    ORDER BY m.id
    FOR UPDATE
)
SELECT {owned_ids.sql},
       (SELECT count(*) FROM project) = 1 AS has_project,
       (SELECT count(*) FROM locked_memory) AS memories,
       (SELECT count(*) FROM own) + (
           SELECT count(*) FROM locked_lane WHERE id = CAST(:own_lane_id AS uuid)) AS own_lanes,
       locked_run.erasure_id, locked_run.is_over
FROM (SELECT) this LEFT JOIN locked_run ON locked_run.erased
