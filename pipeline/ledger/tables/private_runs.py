"""Private runs: sessions whose content is erased at their end, or is not stored at all.

    temporary ──end──► ended      all of it is erased; the id is refused for a time
    incognito ──end──► ended
    ended ──declared again──► temporary | incognito

The id of a run is kept only while it is temporary. The digest identifies it in every state.
"""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, LargeBinary, Table, Text, Uuid

from pipeline.ledger.tables.columns import metadata, now, partial, time

private_runs = Table(
    "private_runs",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    # SHA-256 of the project's id and the run's: private_run_digest() in the migrations.
    Column("digest", LargeBinary, primary_key=True),
    Column("run_id", Text),
    Column("privacy", Text, nullable=False),
    # The event of the erasure at its end.
    Column("erasure_id", Uuid, nullable=False),
    # Time at which the sweeper erases a temporary run.
    time("expires_at"),
    time("ended_at"),
    now("created_at"),
    CheckConstraint("privacy IN ('temporary', 'incognito', 'ended')", name="privacy"),
    CheckConstraint("(privacy = 'temporary') = (run_id IS NOT NULL)", name="run_id"),
    CheckConstraint("(privacy = 'ended') = (ended_at IS NOT NULL)", name="ended"),
    partial("ix_private_runs_run", "project_id", "run_id", where="run_id IS NOT NULL"),
    partial("ix_private_runs_expires", "expires_at", where="expires_at IS NOT NULL"),
    partial("ix_private_runs_ended", "ended_at", where="ended_at IS NOT NULL"),
)
