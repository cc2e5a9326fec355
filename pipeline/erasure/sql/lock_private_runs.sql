-- Lock private runs that have not ended. `erased`: the run that is erased itself; `is_over`: its time
-- is over.
SELECT p.erasure_id, p.expires_at IS NOT NULL AND p.expires_at <= now() AS is_over,
       p.digest = private_run_digest(p.project_id, CAST(:this AS text)) AS erased
FROM private_runs p
WHERE p.project_id = CAST(:project_id AS uuid) AND p.privacy <> 'ended'
  AND p.digest = ANY (ARRAY(
      SELECT private_run_digest(CAST(:project_id AS uuid), run.id)
      FROM unnest(CAST(:run_ids AS text[])) AS run (id)))
ORDER BY p.digest
FOR UPDATE
