-- Cost of a stage's run whose output was not used. Not fenced: it was paid, even if the lane is
-- lost.
INSERT INTO failed_runs (
    batch_id, stage, code, model, calls, prompt_tokens, completion_tokens, cost_usd, ms, prompt
)
SELECT CAST(:batch_id AS uuid), :stage, :code, :model, :calls, :prompt_tokens, :completion_tokens,
       CAST(:cost_usd AS float8), :ms, :prompt
WHERE EXISTS (SELECT FROM events WHERE batch_id = CAST(:batch_id AS uuid))
