"""The Celery edge: messages carry a lane, a fence and a stage, and are hints only."""

from pipeline.collector import collect_rarely_in_a_program

collect_rarely_in_a_program()
