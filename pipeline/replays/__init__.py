"""Replays: a scope's events once more, in a shadow beside it."""
