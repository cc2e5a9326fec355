"""Events in the order of their lanes, and the outcome of each of their facts."""

from __future__ import annotations

from sqlalchemy import (
    DDL,
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    event,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from pipeline.ledger.tables.columns import metadata, now, partial, time

# The events of a project by their time, in indexes.
BY_TIME = ("project_id", "created_at")
NOT_ADD = "event_type <> 'ADD'"
# Condition of rare events: all but adds that succeeded. A filter implies one of its parts.
RARE = (
    "event_type <> 'ADD' OR status IN ('FAILED', 'CANCELLED') OR failure_code IS NOT NULL"
    " OR graph_status IN ('FAILED', 'PARTIAL')"
)
# The entity ids in the filters of an event, as project/kind/id. An index uses the function, so it
# exists before the tables.
OWNERS_NAMED = """CREATE OR REPLACE FUNCTION owners_named(project_id uuid, options jsonb)
RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT ARRAY(
    SELECT project_id || '/' || kind || '/' || (value #>> '{}') FROM (
        SELECT 'user', jsonb_path_query(options, '$.**.user_id.** ? (@.type() == "string")')
        UNION ALL
        SELECT 'agent', jsonb_path_query(options, '$.**.agent_id.** ? (@.type() == "string")')
        UNION ALL
        SELECT 'app', jsonb_path_query(options, '$.**.app_id.** ? (@.type() == "string")')
        UNION ALL
        SELECT 'run', jsonb_path_query(options, '$.**.run_id.** ? (@.type() == "string")')
    ) named (kind, value))
$$"""
event.listen(metadata, "before_create", DDL(OWNERS_NAMED))  # type: ignore[no-untyped-call]

events = Table(
    "events",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("lane_id", ForeignKey("lanes.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("event_type", Text, nullable=False, server_default="ADD"),
    Column("status", Text, nullable=False, server_default="PENDING"),
    Column("options", JSONB, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("batch_id", Uuid),
    Column("failure_code", Text),
    Column("failure_detail", Text),
    Column("graph_status", Text),
    # The reason, if nothing was stored.
    Column("note", Text),
    # The mode in which its messages were processed, and the reason if a budget lowered it.
    Column("mode", Text),
    Column("mode_reason", Text),
    now("created_at"),
    time("started_at"),
    time("completed_at"),
    # Number of times it was put back at the end of its lane after it had ended, and the last time.
    Column("replays", SmallInteger, nullable=False, server_default="0"),
    time("replayed_at"),
    time("undone_at"),
    # Only the previous release writes it, which has no event_costs.
    Column("earlier_tries", JSONB, nullable=False, server_default="[]"),
    # In a shadow: the event of which this is a copy.
    Column("copy_of", Uuid),
    Column("traceparent", Text),
    # Time at which an import stored it; seals cover it, because the other times are older.
    time("imported_at"),
    # Time of its erasure; since then only numbers are left of it.
    time("erased_at"),
    UniqueConstraint("lane_id", "seq"),
    CheckConstraint(
        "status IN ('PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')", name="status"
    ),
    Index("ix_events_feed", *BY_TIME),
    # The newest events of a lane: `seq` is another order after a replay or an import.
    Index("ix_events_lane_newest", "lane_id", text("created_at DESC"), "id"),
    # Lists of FAILED events have the cancelled ones too.
    partial("ix_events_unsuccessful", *BY_TIME, where="status IN ('FAILED', 'CANCELLED')"),
    # Erased events, for their retention.
    partial("ix_events_erased", "project_id", "erased_at", where="erased_at IS NOT NULL"),
    # Few among many: those of a failure code, and those whose graph can be built again.
    partial(
        "ix_events_code",
        "project_id",
        "failure_code",
        "created_at",
        where="failure_code IS NOT NULL",
    ),
    partial(
        "ix_events_graph",
        "project_id",
        "graph_status",
        "created_at",
        where="graph_status IN ('FAILED', 'PARTIAL')",
    ),
    CheckConstraint(
        "(status IN ('PENDING', 'RUNNING')) = (completed_at IS NULL)", name="completed"
    ),
    # Both conditions use `completed_at`: the planner would take an index by status for short, and
    # read the backlog of all scopes for the few events of one.
    partial(
        "ix_events_open",
        "project_id",
        text("coalesce(replayed_at, created_at)"),
        where="completed_at IS NULL",
    ),
    partial("ix_events_ended", "completed_at", where="completed_at IS NOT NULL"),
    partial("ix_events_batch", "batch_id", where="batch_id IS NOT NULL"),
    # Exports, summaries and deletes: few among many adds.
    partial("ix_events_not_add_newest", *BY_TIME, where=NOT_ADD),
    # Rare events of a lane: other kinds than adds, failures, and events with a failure code.
    partial("ix_events_lane_rare", "lane_id", text("created_at DESC"), "id", where=RARE),
    # Owners in the filters of exports, summaries and deletes. See OWNERS_NAMED.
    partial(
        "ix_events_owners_named",
        text("owners_named(project_id, options)"),
        postgresql_using="gin",
        where="event_type <> 'ADD' AND event_type <> 'DRY_RUN'",
    ),
)

receipts = Table(
    "receipts",
    metadata,
    Column("event_id", Uuid, primary_key=True),
    Column("ordinal", SmallInteger, primary_key=True),
    Column("outcome", Text, nullable=False),
    Column("memory_id", Uuid),
    Column("text", Text, nullable=False),
    Column("previous_text", Text),
    Column("reason", Text, nullable=False),
    Column("message_ordinal", SmallInteger, nullable=False),
    # The change that was withheld.
    Column("suggestion_id", Uuid),
    # The conflict that the fact is part of.
    Column("conflict_id", Uuid),
    # Time since when the event has the line, if later than its end: a replay of the scope added it.
    time("adopted_at"),
    # The memories that an add stored in place of a change that it withheld.
    partial("ix_receipts_suggested", "memory_id", where="suggestion_id IS NOT NULL"),
)

# The turns of a lane that a delete_all hid: those after `before_seq`, up to `after_seq`.
cleared_lanes = Table(
    "cleared_lanes",
    metadata,
    Column("event_id", Uuid, primary_key=True),
    Column("lane_id", Uuid, primary_key=True, index=True),
    Column("before_seq", BigInteger, nullable=False),
    Column("after_seq", BigInteger, nullable=False),
)
