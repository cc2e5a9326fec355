"""Turns: messages as they were said, and their vectors."""
