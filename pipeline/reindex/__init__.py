"""Reindexing: build a vector index beside the one that is served."""
