"""Summaries of a conversation and their versions."""
