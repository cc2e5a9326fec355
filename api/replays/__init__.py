"""Replays of a project with another prompt, model or embedder."""
