"""Turns: messages as clients sent them, and their vectors."""
