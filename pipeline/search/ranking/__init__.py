"""Ranking: signals, their fusion to a score, the cutoff, and the order of results."""
