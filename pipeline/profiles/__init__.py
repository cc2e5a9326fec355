"""Profiles of users: settings, the values of fields, due generations and jobs.

pipeline.ingest.profiles accepts generations; pipeline.ingest.stages.profile carries them out.
"""
