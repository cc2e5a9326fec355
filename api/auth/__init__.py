"""Authentication: API keys, their cache, their rate limit, and the tenant check."""
