"""Backup and restore of the ledger with PostgreSQL's own programs.

clients    pg_dump and pg_restore: which one fits the server, and how it connects
archive    files of a backup: written as a whole, checked, read back
settings   settings of the stack in the manifest, and in a stack that has none
backup     copy the ledger into a directory
restore    bring a backup into an empty database
"""
