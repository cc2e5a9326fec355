"""Chaos tests: kill and freeze processes; no event may be lost, doubled or reordered."""
