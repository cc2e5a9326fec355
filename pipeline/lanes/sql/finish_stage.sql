-- Save a stage's output and move the lane to the next stage, in one commit: after a crash the stage
-- is either done or not begun. The lane is queued, or stays with its worker (`keeps`), which runs
-- the next stage, whose first attempt is counted here, or settles the batch.
WITH held AS (
    UPDATE lanes SET
        state = CASE WHEN CAST(:keeps AS boolean) THEN lanes.state ELSE 'QUEUED' END,
        stage = coalesce(CAST(:next_stage AS text), lanes.stage),
        due_at = now() + CAST(:due_in AS interval),
        owner = CASE WHEN CAST(:keeps AS boolean) THEN lanes.owner END,
        attempts = CAST(:attempts AS smallint), waits = 0, wait_code = NULL
    WHERE id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint)
      AND state = 'RUNNING' AND owner = CAST(:owner AS uuid)
      AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
    RETURNING id AS lane_id, batch_id
), run AS (
    INSERT INTO stage_runs (
        batch_id, stage, lane_id, output, model, calls, prompt_tokens, completion_tokens, cost_usd,
        ms
    )
    SELECT batch_id, :stage, lane_id, CAST(:output AS jsonb), :model, :calls, :prompt_tokens,
           :completion_tokens, CAST(:cost_usd AS float8), :ms
    FROM held
)
SELECT true AS lane, true AS held FROM held
