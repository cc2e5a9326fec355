"""Suggested changes: list, accept, reject, dismiss."""
