"""Tenants: organizations, projects, members, API keys and owners."""
