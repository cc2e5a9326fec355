"""Versions: memories as they were at a time, comparison of two times, and restore."""
