"""Curator: runs over a scope's memories that suggest deletes, combinations and updates."""
