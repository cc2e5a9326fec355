"""Profiles of users, their settings and jobs."""
