-- Lock the rows of `read_owned`, in the order of adds: the idempotency keys, then the private runs
-- that have not ended, then the lanes. Each step waits for the one before, whose rows it counts.
-- Returns the run that is erased itself, if it is private; `is_over`: its time is over.
WITH key AS MATERIALIZED (
    SELECT key FROM idempotency_keys
    WHERE project_id = CAST(:project_id AS uuid) AND key = ANY (CAST(:keys AS text[]))
    ORDER BY key
    FOR UPDATE
), run AS MATERIALIZED (
    SELECT p.erasure_id, p.expires_at IS NOT NULL AND p.expires_at <= now() AS is_over,
           p.digest = private_run_digest(p.project_id, CAST(:this AS text)) AS erased
    FROM private_runs p
    WHERE (SELECT count(*) FROM key) >= 0
      AND p.project_id = CAST(:project_id AS uuid) AND p.privacy <> 'ended'
      AND p.digest = ANY (ARRAY(
          SELECT private_run_digest(CAST(:project_id AS uuid), run.id)
          FROM unnest(CAST(:run_ids AS text[])) AS run (id)))
    ORDER BY p.digest
    FOR UPDATE
), lane AS MATERIALIZED (
    SELECT id FROM lanes
    WHERE (SELECT count(*) FROM run) >= 0 AND id = ANY (CAST(:lane_ids AS uuid[]))
    ORDER BY id
    FOR UPDATE
)
SELECT locked.lanes, own.erasure_id, own.is_over
FROM (SELECT count(*) AS lanes FROM lane) locked
LEFT JOIN (SELECT * FROM run WHERE erased) own ON true
