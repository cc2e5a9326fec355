"""The tables. PostgreSQL is the only source of truth; broker and vectors are rebuilt from it.

    organizations ─< projects ─< members ─< api_keys   access; a key need not belong to a member
    projects ─< idempotency_keys                   keys that clients send to repeat an add safely
    projects ─< shadows                            replays of a scope, each a project of its own
    projects ─< owners                             names and metadata of users, agents, apps, runs
    projects ─< lanes ─< events ─< messages        the turns, in order (lane, seq, ordinal)
                  │         │         └─── turn_vectors   vectors of turns for searches
                  │         ├──< receipts          the outcome of each fact
                  │         ├──< cleared_lanes     the turns that a delete_all hid
                  │         ├─── stage_runs        output and cost of each stage of its batch
                  │         └─── failed_runs       cost of failed tries
                  ├──< memories ─< memory_history  current state, and all states so far
                  │         └─── feedback          users' opinions
                  └──< entities ─< relations       the graph, bi-temporal
    projects ─< erasures                           receipts of erasures: see erasure
    projects ─< books, book_entries                numbers of rows: see tables.balance
    projects ─< usage_daily                        costs of model calls: see tables.costs

All times are the database's: leases, waits and timestamps never depend on a worker's clock.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Date,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, ExcludeConstraint

from pipeline.ledger.tables.balance import book_entries, books
from pipeline.ledger.tables.costs import event_costs, usage_daily
from pipeline.ledger.tables.projects import (
    api_keys,
    cooldowns,
    idempotency_keys,
    members,
    metadata,
    now,
    organizations,
    owners,
    projects,
    scope_ids,
    shadows,
    time,
)
from pipeline.ledger.tables.vectors import rebuilt, turn_vectors, vector_collections, vector_indexes

__all__ = [
    "api_keys",
    "book_entries",
    "books",
    "cleared_lanes",
    "cooldowns",
    "entities",
    "event_costs",
    "events",
    "failed_runs",
    "feedback",
    "idempotency_keys",
    "lanes",
    "members",
    "memories",
    "memory_history",
    "messages",
    "metadata",
    "organizations",
    "owners",
    "projects",
    "rebuilt",
    "receipts",
    "relations",
    "shadows",
    "stage_runs",
    "turn_vectors",
    "usage_daily",
    "vector_collections",
    "vector_indexes",
]


def _terms() -> Column[object]:
    """The words of a text, as `pipeline.text.terms` splits it, for searches by words."""
    return Column("terms", ARRAY(Text), nullable=False, server_default="{}")


def _by_owner(table: str, *then: str) -> Iterator[Index]:
    """Indexes by agent, app and run, which are partial: many rows have none of these ids."""
    for name in ("agent_id", "app_id", "run_id"):
        named = text(f"{name} IS NOT NULL")
        kind = name.removesuffix("_id")
        yield Index(f"ix_{table}_{kind}", "project_id", name, *then, postgresql_where=named)


# One row per scope: the state of its queue, and its owner with a lease.
#   IDLE     nothing to do
#   QUEUED   a task is in the broker; the sweeper sends another one after due_at (long grace)
#   RUNNING  a worker owns the lane; due_at = end of its lease (short, renewed by heartbeat)
#   WAITING  paused until due_at (an outage, a rate limit)
lanes = Table(
    "lanes",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    *scope_ids(),
    Column("accepted_seq", BigInteger, nullable=False, server_default="0"),
    Column("settled_seq", BigInteger, nullable=False, server_default="0"),
    # Messages up to this seq are deleted: they are in no model's context and in no search.
    Column("forgotten_seq", BigInteger, nullable=False, server_default="0"),
    Column("state", Text, nullable=False),
    Column("stage", Text, nullable=False, server_default="extract"),
    Column("batch_id", Uuid),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    Column("owner", Uuid),
    time("due_at"),
    Column("attempts", SmallInteger, nullable=False, server_default="0"),
    Column("waits", SmallInteger, nullable=False, server_default="0"),
    Column("wait_code", Text),
    # Error of the dependency; only valid while the lane is WAITING.
    Column("wait_cause", Text),
    # Maximum number of events of the next batch; NULL: the setting. Halved to find a poison event.
    Column("width", SmallInteger),
    now("created_at"),
    CheckConstraint("state IN ('IDLE', 'QUEUED', 'RUNNING', 'WAITING')", name="state"),
    CheckConstraint("(state = 'IDLE') = (due_at IS NULL)", name="due"),
    Index("ix_lanes_due", "due_at", postgresql_where=text("state <> 'IDLE'")),
    Index("ix_lanes_owner", "project_id", "user_id"),
    *_by_owner("lanes"),
)

NOT_ADD = text("event_type <> 'ADD'")

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
    # Time of its erasure; since then only numbers are left of it.
    time("erased_at"),
    UniqueConstraint("lane_id", "seq"),
    CheckConstraint(
        "status IN ('PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')", name="status"
    ),
    Index("ix_events_feed", "project_id", "created_at"),
    Index(
        "ix_events_failed",
        "project_id",
        "created_at",
        postgresql_where=text("status = 'FAILED'::text"),
    ),
    CheckConstraint(
        "(status IN ('PENDING', 'RUNNING')) = (completed_at IS NULL)", name="completed"
    ),
    # Both conditions use `completed_at`: the planner would take an index by status for short, and
    # read the backlog of all scopes for the few events of one.
    Index(
        "ix_events_open",
        "project_id",
        text("coalesce(replayed_at, created_at)"),
        postgresql_where=text("completed_at IS NULL"),
    ),
    Index("ix_events_ended", "completed_at", postgresql_where=text("completed_at IS NOT NULL")),
    Index("ix_events_batch", "batch_id", postgresql_where=text("batch_id IS NOT NULL")),
    # Exports, summaries and deletes: few among many adds.
    Index("ix_events_not_add", "project_id", "lane_id", postgresql_where=NOT_ADD),
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

messages = Table(
    "messages",
    metadata,
    Column("lane_id", Uuid, primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("ordinal", SmallInteger, primary_key=True),
    Column("role", Text, nullable=False),
    Column("name", Text),
    Column("content", Text, nullable=False),
    # Parts of the message that were left out (images, tool calls): [{part, type, reason}].
    Column("omitted", JSONB(none_as_null=True)),
    time("said_at", nullable=False),
    _terms(),
    # For the messages before and after a message, by time.
    Index("ix_messages_order", "lane_id", "said_at", "seq", "ordinal"),
)

stage_runs = Table(
    "stage_runs",
    metadata,
    Column("batch_id", Uuid, primary_key=True),
    Column("stage", Text, primary_key=True),
    # The lane of the texts in the output; a batch that was split has no events to look it up.
    Column("lane_id", Uuid, nullable=False),
    # NULL: deleted after the retention time, or erased.
    Column("output", JSONB),
    Column("model", Text, nullable=False, server_default=""),
    Column("calls", Integer, nullable=False, server_default="0"),
    Column("prompt_tokens", Integer, nullable=False, server_default="0"),
    Column("completion_tokens", Integer, nullable=False, server_default="0"),
    Column("cost_usd", Float),
    Column("ms", Float, nullable=False),
    now("finished_at"),
    Index("ix_stage_runs_lane", "lane_id"),
    Index("ix_stage_runs_kept", "finished_at", postgresql_where=text("output IS NOT NULL")),
)

# Costs of failed tries.
failed_runs = Table(
    "failed_runs",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("batch_id", Uuid, nullable=False),
    Column("stage", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("cost_usd", Float),
    Column("ms", Float, nullable=False),
    now("finished_at"),
    Index("ix_failed_runs_batch", "batch_id"),
)

memories = Table(
    "memories",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("lane_id", Uuid, nullable=False),
    *scope_ids(),
    Column("text", Text, nullable=False),
    Column("text_hash", LargeBinary, nullable=False),
    _terms(),
    Column("metadata", JSONB, nullable=False, server_default="{}"),
    Column("categories", ARRAY(Text), nullable=False, server_default="{}"),
    Column("attributed_to", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="ACTIVE"),
    Column("immutable", Boolean, nullable=False, server_default="false"),
    Column("expiration_date", Date),
    Column("embedding", LargeBinary, nullable=False),
    Column("embedder", Text, nullable=False),
    Column("version", Integer, nullable=False, server_default="1"),
    # The version in the vector index; if it differs from `version`, the index is stale.
    Column("projected_version", Integer, nullable=False, server_default="0"),
    # True while the index is stale. A stored column has statistics: the planner knows it is rarely
    # true.
    Column("owed", Boolean, Computed("projected_version <> version", persisted=True)),
    # Provenance: the event and message of its text. NULL if a person wrote it.
    Column("event_id", Uuid),
    Column("message_ordinal", SmallInteger),
    # Time since which it is true in the world; created_at is the time it was stored.
    time("valid_from", nullable=False),
    # The shadow whose memories replaced this one.
    Column("replaced_by", Uuid),
    now("created_at"),
    now("updated_at"),
    CheckConstraint("state IN ('ACTIVE', 'RETIRED')", name="state"),
    # No two active memories of a scope have the same text. Checked at commit: within a transaction,
    # one memory can take over the text of another one.
    ExcludeConstraint(
        ("lane_id", "="),
        ("text_hash", "="),
        name="uq_memories_active_text",
        where=text("state = 'ACTIVE'"),
        using="btree",
        deferrable=True,
        initially="DEFERRED",
    ),
    Index("ix_memories_user", "project_id", "user_id", "created_at"),
    Index("ix_memories_feed", "project_id", "created_at"),
    *_by_owner("memories", "created_at"),
    Index("ix_memories_lane", "lane_id"),
    # Queries read them by age.
    Index("ix_memories_owed", "updated_at", postgresql_where=text("owed")),
    Index("ix_memories_owed_embedder", "embedder", postgresql_where=text("owed")),
)

memory_history = Table(
    "memory_history",
    metadata,
    Column("memory_id", Uuid, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("event", Text, nullable=False),
    Column("old_text", Text),
    Column("new_text", Text),
    Column("metadata", JSONB, nullable=False, server_default="{}"),
    Column("expiration_date", Date),
    Column("reason", Text),
    # The event that caused this state; NULL if a person did.
    Column("event_id", Uuid),
    Column("message_ordinal", SmallInteger),
    # The event that this state undoes.
    Column("undoes", Uuid),
    time("valid_from", nullable=False),
    now("created_at"),
    Index(
        "ix_memory_history_feed",
        "project_id",
        text("created_at DESC"),
        "memory_id",
        text("version DESC"),
    ),
    Index("ix_memory_history_event", "event_id", postgresql_where=text("event_id IS NOT NULL")),
)

feedback = Table(
    "feedback",
    metadata,
    Column("memory_id", ForeignKey("memories.id", ondelete="CASCADE"), primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("feedback", Text, nullable=False),
    Column("reason", Text),
    now("created_at"),
    CheckConstraint("feedback IN ('POSITIVE', 'NEGATIVE', 'VERY_NEGATIVE')", name="feedback"),
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
)

entities = Table(
    "entities",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("lane_id", Uuid, nullable=False),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    now("created_at"),
    UniqueConstraint("lane_id", "name_key"),
)

relations = Table(
    "relations",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("lane_id", Uuid, nullable=False),
    Column("source_id", ForeignKey("entities.id"), nullable=False),
    Column("relation", Text, nullable=False),
    Column("destination_id", ForeignKey("entities.id"), nullable=False),
    Column("event_id", Uuid, nullable=False),
    # The event that ended it, so that an undo can restore it.
    Column("ended_by", Uuid),
    # Valid time: true in the world from … to. Transaction time: known here from … to.
    time("valid_from", nullable=False),
    time("valid_to"),
    now("created_at"),
    time("expired_at"),
    Index(
        "uq_relations_current",
        "lane_id",
        "source_id",
        "relation",
        "destination_id",
        unique=True,
        postgresql_where=text("expired_at IS NULL"),
    ),
    Index("ix_relations_event", "event_id"),
    Index("ix_relations_ended", "ended_by", postgresql_where=text("ended_by IS NOT NULL")),
)
