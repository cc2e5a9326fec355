-- Add the cost of a call that belongs to no batch to the sums of its scope's project and user. A
-- scope that is erased has no user any more; the lock makes this wait for an erasure.
WITH lane AS MATERIALIZED (
    SELECT id, project_id, user_id FROM lanes
    WHERE id = CAST(:lane_id AS uuid) AND project_id = CAST(:project_id AS uuid)
    FOR KEY SHARE
)
INSERT INTO usage_daily AS kept (
    project_id, user_id, day, model, part, calls, prompt_tokens, completion_tokens, cost_nano_usd
)
SELECT l.project_id, line.user_id, (now() AT TIME ZONE 'UTC')::date, CAST(:model AS text),
       line.part, CAST(:calls AS bigint), CAST(:prompt_tokens AS bigint),
       CAST(:completion_tokens AS bigint), round(CAST(:cost_usd AS float8) * 1e9)::bigint
FROM lane l
JOIN projects p ON p.id = l.project_id
CROSS JOIN LATERAL (
    VALUES ('', (abs(hashtext(l.id::text)::bigint) % 8)::smallint), (l.user_id, 0::smallint)
) line (user_id, part)
WHERE line.user_id IS NOT NULL
{to_daily_sums.sql}
