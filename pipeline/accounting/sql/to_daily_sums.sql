-- Add amounts to their row of usage_daily AS kept. A cost stays NULL until one is known.
ON CONFLICT (project_id, user_id, day, model, part) DO UPDATE SET
    calls = kept.calls + excluded.calls,
    prompt_tokens = kept.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = kept.completion_tokens + excluded.completion_tokens,
    cost_nano_usd = CASE WHEN kept.cost_nano_usd IS NULL THEN excluded.cost_nano_usd
                         ELSE kept.cost_nano_usd + coalesce(excluded.cost_nano_usd, 0) END
