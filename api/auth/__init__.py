"""Authentication: API keys, their cache, their rate limit, and the tenant a request names."""
