-- End the private runs that are erased: the run itself, and those whose lanes are all erased. Their
-- ids are deleted; adds to them are refused. The rows are locked by the caller.
UPDATE private_runs SET privacy = 'ended', run_id = NULL, expires_at = NULL, ended_at = now()
WHERE project_id = CAST(:project_id AS uuid) AND privacy <> 'ended'
  AND digest = ANY (ARRAY(
      SELECT private_run_digest(CAST(:project_id AS uuid), run.id)
      FROM unnest(CAST(:run_ids AS text[])) AS run (id)
      WHERE run.id = CAST(:this AS text) OR NOT EXISTS (
          SELECT FROM lanes l
          WHERE l.project_id = CAST(:project_id AS uuid) AND l.run_id = run.id
            AND l.id <> ALL (CAST(:lane_ids AS uuid[])))))
