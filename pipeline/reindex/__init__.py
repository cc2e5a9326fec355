"""Reindexing: build another vector index next to the live one."""
