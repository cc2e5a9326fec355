-- What a try of a stage cost that came to nothing: paid is paid, whoever holds the lane by now.
INSERT INTO failed_runs (
    batch_id, stage, code, model, calls, prompt_tokens, completion_tokens, cost_usd, ms
)
SELECT CAST(:batch_id AS uuid), :stage, :code, :model, :calls, :prompt_tokens, :completion_tokens,
       CAST(:cost_usd AS float8), :ms
WHERE EXISTS (SELECT FROM events WHERE batch_id = CAST(:batch_id AS uuid))
