-- Save the stage's output and its cost.
run AS (
    INSERT INTO stage_runs (
        batch_id, stage, lane_id, output, model, calls, prompt_tokens, completion_tokens, cost_usd,
        ms, prompt
    )
    SELECT batch_id, :stage, lane_id, CAST(:output AS jsonb), :model, :calls, :prompt_tokens,
           :completion_tokens, CAST(:cost_usd AS float8), :ms, :prompt
    FROM advanced
)
