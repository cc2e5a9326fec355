"""Profiles of users: one row per user, the values of its fields over time, and jobs.

    profiles         changes of the user's memories, and the newest generation
    profile_fields   values of fields: half-open intervals [stored_at, replaced_at)
    profile_jobs     generations that one request has started

A trigger on `memories` counts the changes in the transaction of the writer.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Index, Integer, Table, Text, Uuid, func
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from pipeline.ledger.tables.columns import metadata, now, partial, time

profiles = Table(
    "profiles",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    Column("user_id", Text, primary_key=True),
    Column("id", Uuid, nullable=False, server_default=func.gen_random_uuid()),
    # Transactions that changed memories of the user, and their number when the newest generation
    # began to read. The profile is stale while they differ.
    Column("changes", BigInteger, nullable=False, server_default="1"),
    Column("read_changes", BigInteger, nullable=False, server_default="0"),
    # The last transaction that was counted.
    Column("changed_in", BigInteger, nullable=False, server_default="0"),
    # Time of the first change that no generation was accepted for.
    time("due_at"),
    # The newest accepted generation.
    Column("event_id", Uuid),
    Column("generations", Integer, nullable=False, server_default="0"),
    time("updated_at"),
    partial("ix_profiles_due", "due_at", where="due_at IS NOT NULL"),
)

profile_fields = Table(
    "profile_fields",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("value", JSONB, nullable=False),
    # The memories that state the value.
    Column("memory_ids", ARRAY(Uuid), nullable=False),
    Column("event_id", Uuid, nullable=False),
    now("stored_at"),
    time("replaced_at"),
    Index("ix_profile_fields_user", "project_id", "user_id", "replaced_at"),
    Index("ix_profile_fields_memories", "memory_ids", postgresql_using="gin"),
    partial("ix_profile_fields_replaced", "replaced_at", where="replaced_at IS NOT NULL"),
)

profile_jobs = Table(
    "profile_jobs",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False, index=True),
    Column("operation", Text, nullable=False),
    Column("event_ids", ARRAY(Uuid), nullable=False),
    time("created_at", nullable=False, server_default=func.now(), index=True),
)
