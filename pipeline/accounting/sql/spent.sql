-- Costs of a project, or of one of its users, in the current day or month (UTC).
SELECT coalesce(sum(prompt_tokens + completion_tokens), 0)::bigint AS tokens,
       coalesce(sum(cost_nano_usd), 0)::bigint AS nano_usd
FROM usage_daily
WHERE project_id = CAST(:project_id AS uuid) AND user_id = CAST(:user_id AS text)
  AND day >= date_trunc(CAST(:per AS text), now() AT TIME ZONE 'UTC')::date
