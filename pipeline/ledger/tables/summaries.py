"""Summaries of conversations: all versions of each, and the work that is left to do.

    summaries        one row per version; the newest that fits the lane is current
    summary_states   messages since the last version, and the time of the next one

A version is made of the messages after `after_seq`, up to `until_seq`. It fits the lane if
`after_seq` is the lane's `forgotten_seq`: a deleted scope has no summary, until the deletion is
undone.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, SmallInteger, Table, Text, Uuid

from pipeline.ledger.tables.columns import metadata, now, partial, time

summaries = Table(
    "summaries",
    metadata,
    Column("lane_id", Uuid, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("project_id", Uuid, nullable=False, index=True),
    Column("text", Text, nullable=False),
    Column("after_seq", BigInteger, nullable=False),
    Column("until_seq", BigInteger, nullable=False),
    # Number of messages that this version added to the one before it.
    Column("messages", Integer, nullable=False),
    Column("model", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    now("created_at"),
)

summary_states = Table(
    "summary_states",
    metadata,
    Column("lane_id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False, index=True),
    # The newest version, also of deleted ones. A write that has seen another one is refused
    # (optimistic lock).
    Column("version", Integer, nullable=False, server_default="0"),
    # Messages and their estimated tokens since the last version.
    Column("messages", Integer, nullable=False, server_default="0"),
    Column("tokens", BigInteger, nullable=False, server_default="0"),
    # Number of failed tries of the next version, and the reason of the last one.
    Column("tries", SmallInteger, nullable=False, server_default="0"),
    Column("reason", Text),
    # NULL: nothing to do. A worker that makes the version has until then.
    time("due_at"),
    # Until then a worker makes the next version, or its last try is over.
    time("claimed_until"),
    partial("ix_summary_states_due", "due_at", where="due_at IS NOT NULL"),
)
