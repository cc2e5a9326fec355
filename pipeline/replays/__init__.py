"""Replays: process a scope's events again in a shadow, a copy apart from the scope."""
