"""Health, readiness, metrics and statistics."""
