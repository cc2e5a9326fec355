-- Keep a stage's output and hand the lane to the next stage, in one commit: after a crash the work
-- is either all to do again or all done. An output once kept, and its cost, is never replaced.
WITH held AS (
    UPDATE lanes SET
        state = 'QUEUED',
        stage = CAST(:next_stage AS text),
        due_at = now() + CAST(:grace AS interval),
        owner = NULL, attempts = 0, waits = 0, wait_code = NULL
    WHERE id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint) AND state = 'RUNNING'
    RETURNING batch_id
), run AS (
    INSERT INTO stage_runs (
        batch_id, stage, output, model, calls, prompt_tokens, completion_tokens, cost_usd, ms
    )
    SELECT batch_id, :stage, CAST(:output AS jsonb), :model, :calls, :prompt_tokens,
           :completion_tokens, CAST(:cost_usd AS float8), :ms
    FROM held
    ON CONFLICT (batch_id, stage) DO UPDATE SET
        ms = stage_runs.ms + excluded.ms, finished_at = now()
)
SELECT count(*) FROM held
