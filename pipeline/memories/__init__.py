"""Memories: read, edit and delete them; their history."""
