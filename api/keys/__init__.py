"""API keys: create, list, revoke."""
