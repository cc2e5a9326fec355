"""Suggestions: changes of memories that wait for a person's decision."""
