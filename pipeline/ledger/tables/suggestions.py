"""Suggestions: changes of memories that wait for a person's decision."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    DDL,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    event,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from pipeline.ledger.tables.columns import metadata, now, partial, time

# The state that is shown: an open one whose memories have changed is invalid. An index uses the
# function, so it exists before the table.
SHOWN_STATE = """CREATE OR REPLACE FUNCTION shown_state(state text, outdated boolean)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT CASE WHEN state = 'OPEN' AND outdated THEN 'INVALID' ELSE state END
$$"""
event.listen(metadata, "before_create", DDL(SHOWN_STATE))  # type: ignore[no-untyped-call]
SHOWN = text("shown_state(state, outdated)")
# Options of the indexes by memory. fastupdate is off, because each look-up would read the list of
# pending entries.
BY_TARGETS: dict[str, Any] = {
    "postgresql_using": "gin",
    "postgresql_ops": {"targets": "jsonb_path_ops"},
    "postgresql_with": {"fastupdate": "off"},
}

suggestions = Table(
    "suggestions",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("lane_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="OPEN"),
    # `event` for a change that an add withheld, `curator` for one that a run proposed.
    Column("origin", Text, nullable=False),
    Column("event_id", Uuid),
    Column("fact_text", Text),
    # [{memory_id, version}]: the memories that it would change.
    Column("targets", JSONB, nullable=False),
    Column("proposed_text", Text),
    Column("reason", Text, nullable=False),
    Column("content_hash", LargeBinary, nullable=False),
    now("created_at"),
    time("decided_at"),
    # Id of the API key that decided it.
    Column("decided_by", Text),
    # The event of its acceptance.
    Column("decision_event_id", Uuid),
    # The run of the curator that proposed it.
    Column("run_id", Uuid),
    # While it is OPEN: see the function is_outdated. Kept by triggers, so that lists of a state
    # need not compare each suggestion with its memories.
    Column("outdated", Boolean, nullable=False, server_default="false"),
    CheckConstraint("kind IN ('UPDATE', 'DELETE', 'COMBINE', 'RESOLVE')", name="kind"),
    CheckConstraint(
        "state IN ('OPEN', 'ACCEPTED', 'REJECTED', 'DISMISSED', 'INVALID')", name="state"
    ),
    UniqueConstraint("lane_id", "content_hash"),
    # The open suggestions about a memory: those that would change it, and those of its own event.
    partial("ix_suggestions_targets", "targets", where="state = 'OPEN'", **BY_TARGETS),
    # Open suggestions by memory: a change of the memory marks them as outdated.
    partial(
        "ix_suggestions_current", "targets", where="state = 'OPEN' AND NOT outdated", **BY_TARGETS
    ),
    partial("ix_suggestions_event", "event_id", where="state = 'OPEN'"),
    partial("ix_suggestions_run", "run_id", where="run_id IS NOT NULL"),
    Index("ix_suggestions_shown", "project_id", SHOWN, text("created_at DESC"), "id"),
    Index("ix_suggestions_kind", "project_id", "kind", text("created_at DESC"), "id"),
    Index("ix_suggestions_kind_shown", "project_id", "kind", SHOWN, text("created_at DESC"), "id"),
    Index("ix_suggestions_project", "project_id", text("created_at DESC"), "id"),
    # Lists of the lanes of an owner. Those of a kind or a state read each pair of both that they
    # have.
    Index("ix_suggestions_lane", "lane_id", text("created_at DESC"), "id"),
    Index("ix_suggestions_lane_shown", "lane_id", "kind", SHOWN, text("created_at DESC"), "id"),
)
