"""Private runs: sessions whose content is erased at their end, or is not stored at all."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Index, Table, Text, Uuid, text

from pipeline.ledger.tables.columns import metadata, now, time

private_runs = Table(
    "private_runs",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    Column("run_id", Text, primary_key=True),
    Column("privacy", Text, nullable=False),
    # The event of the erasure at its end.
    Column("erasure_id", Uuid, nullable=False),
    # Time at which the sweeper erases a temporary run.
    time("expires_at"),
    now("created_at"),
    CheckConstraint("privacy IN ('temporary', 'incognito')", name="privacy"),
    Index("ix_private_runs_expires", "expires_at", postgresql_where=text("expires_at IS NOT NULL")),
)
