"""The Celery edge: messages carry a lane, a fence and a stage, and are hints only."""
