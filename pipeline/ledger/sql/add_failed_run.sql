-- What a try of a stage cost that came to nothing.
INSERT INTO failed_runs (
    batch_id, stage, code, model, calls, prompt_tokens, completion_tokens, cost_usd, ms
)
SELECT batch_id, :stage, :code, :model, :calls, :prompt_tokens, :completion_tokens,
       CAST(:cost_usd AS float8), :ms
FROM lanes
WHERE id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint)
  AND state = 'RUNNING' AND owner = CAST(:owner AS uuid)
  AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
