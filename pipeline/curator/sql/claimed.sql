curator_runs.id = CAST(:run_id AS uuid) AND curator_runs.fence = CAST(:fence AS bigint)
    AND curator_runs.state = 'RUNNING'
