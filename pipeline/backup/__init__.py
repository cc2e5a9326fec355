"""Backup and restore: what a backup states about the ledger, and the ledger's side of both.

manifest   the description of a backup: schema, time, rows and checksum of each table
store      snapshot and checksums of a ledger; check, clear and activate one that is restored

`deploy.backup` runs PostgreSQL's own pg_dump and pg_restore around them.
"""
