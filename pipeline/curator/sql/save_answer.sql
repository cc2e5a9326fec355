-- Save a model's answer, before anything acts on it, with its cost. No row: another worker has the
-- run.
WITH run AS (
    UPDATE curator_runs SET
        due_at = now() + CAST(:lease AS interval),
        steps = steps + 1,
        malformed = malformed + CAST(:malformed AS integer),
        model = CASE WHEN CAST(:model AS text) = '' THEN model ELSE CAST(:model AS text) END,
        calls = calls + CAST(:calls AS integer),
        prompt_tokens = prompt_tokens + CAST(:prompt_tokens AS integer),
        completion_tokens = completion_tokens + CAST(:completion_tokens AS integer),
        cost_usd = CASE WHEN CAST(:cost_usd AS float8) IS NULL THEN cost_usd
                        ELSE coalesce(cost_usd, 0) + CAST(:cost_usd AS float8) END
    WHERE {claimed.sql}
    RETURNING id, project_id, lane_id, steps
), step AS (
    INSERT INTO curator_steps (run_id, ordinal, lane_id, centres, shown, answer)
    SELECT id, steps, lane_id, CAST(:centres AS uuid[]), CAST(:shown AS jsonb),
           CAST(:answer AS jsonb)
    FROM run
), paid AS (
    INSERT INTO usage_daily AS kept (
        project_id, user_id, day, model, part, calls, prompt_tokens, completion_tokens,
        cost_nano_usd
    )
    SELECT run.project_id, line.user_id, (now() AT TIME ZONE 'UTC')::date, CAST(:model AS text),
           0, CAST(:calls AS bigint), CAST(:prompt_tokens AS bigint),
           CAST(:completion_tokens AS bigint), round(CAST(:cost_usd AS float8) * 1e9)::bigint
    FROM run
    JOIN lanes ON lanes.id = run.lane_id
    CROSS JOIN LATERAL (VALUES (''), (lanes.user_id)) AS line (user_id)
    WHERE line.user_id IS NOT NULL AND CAST(:calls AS integer) > 0
    {to_daily_sums.sql}
)
SELECT steps FROM run
