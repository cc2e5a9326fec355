"""Structured exports and summaries by a model."""
