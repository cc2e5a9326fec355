"""Ingest: accept an add, and run its stages."""
