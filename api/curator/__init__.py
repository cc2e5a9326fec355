"""Runs of the curator: start, list, cancel."""
