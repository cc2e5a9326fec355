-- Return to the stage retrieve, because a person has changed a memory that the decisions are about.
-- The extracted facts stay; the costs of the deleted outputs stay on the receipt.
WITH moved AS (
    UPDATE lanes SET
        state = 'QUEUED', stage = 'retrieve', due_at = now() + CAST(:grace AS interval),
        owner = NULL, attempts = 0, waits = 0, wait_code = NULL
    WHERE {fence.sql}
      AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
    RETURNING batch_id
), outdated AS (
    DELETE FROM stage_runs
    WHERE batch_id IN (SELECT batch_id FROM moved) AND stage IN ('retrieve', 'consolidate')
    RETURNING *
), failed_run AS (
    INSERT INTO failed_runs (
        batch_id, stage, code, model, calls, prompt_tokens, completion_tokens, cost_usd, ms
    )
    SELECT batch_id, stage, CAST(:code AS text), model, calls, prompt_tokens, completion_tokens,
           cost_usd, ms
    FROM outdated
)
SELECT true AS lane FROM moved
