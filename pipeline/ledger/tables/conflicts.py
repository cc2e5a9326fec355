"""Open conflicts: statements of a scope that cannot both hold."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Date,
    ForeignKey,
    Index,
    LargeBinary,
    Table,
    Text,
    Uuid,
    text,
)

from pipeline.ledger.tables.columns import metadata, now, partial, time

# The order of lists, and the conditions of the indexes of a state.
NEWEST = (text("created_at DESC"), "id")
OPEN, CLOSED = "open_until IS NOT NULL", "open_until IS NULL"

conflicts = Table(
    "conflicts",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("lane_id", Uuid, nullable=False),
    Column("slot", Text, nullable=False),
    # The event whose statement raised it.
    Column("event_id", Uuid, nullable=False),
    # The decision of a person: its event, and what it keeps. An undo of the event opens it again.
    # NULL: open while two of its statements stand; otherwise a later change resolved it.
    Column("resolved_by", Uuid),
    Column("resolution", Text),
    now("created_at"),
    time("resolved_at"),
    # The last day (UTC) on which two statements against each other stand, `infinity` if neither
    # expires; NULL if none do, or if a person has decided: see the function open_until. Kept by
    # triggers, and made NULL by the sweeper once the day is over.
    Column("open_until", Date),
    CheckConstraint("resolution IN ('ONE', 'BOTH', 'TEXT')", name="resolution"),
    # Lists of a project, and of the lanes of an owner.
    Index("ix_conflicts_project", "project_id", *NEWEST),
    partial("ix_conflicts_open", "project_id", *NEWEST, where=OPEN),
    partial("ix_conflicts_resolved", "project_id", *NEWEST, where=CLOSED),
    Index("ix_conflicts_lane", "lane_id", *NEWEST),
    partial("ix_conflicts_lane_open", "lane_id", *NEWEST, where=OPEN),
    partial("ix_conflicts_lane_resolved", "lane_id", *NEWEST, where=CLOSED),
    partial("ix_conflicts_until", "open_until", "project_id", where="open_until < 'infinity'"),
    partial("ix_conflicts_resolved_by", "resolved_by", where="resolved_by IS NOT NULL"),
)

# A statement of a conflict, which is a memory with its text, and the one that it contradicts, which
# has a row of its own. It stands while the memory has this text.
conflict_members = Table(
    "conflict_members",
    metadata,
    Column("conflict_id", ForeignKey("conflicts.id", ondelete="CASCADE"), primary_key=True),
    Column("memory_id", Uuid, primary_key=True, index=True),
    Column("against_id", Uuid, primary_key=True),
    Column("lane_id", Uuid, nullable=False, index=True),
    Column("text_hash", LargeBinary, nullable=False),
)
