"""Memories: their current and past states, the history of changes, feedback and accesses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
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
    Uuid,
    event,
    func,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, ExcludeConstraint

from pipeline.ledger.tables.columns import (
    SHARED_OWNERS,
    by_owner,
    metadata,
    now,
    partial,
    projected,
    scope_ids,
    terms,
    time,
)

# The state as a constant in the SQL text, not a parameter: only with it a generic plan uses an
# index of the active memories.
ACTIVE: ColumnElement[str] = literal_column("'ACTIVE'", Text)


def _structure() -> Iterator[Column[Any]]:
    """Columns of a fact's structure; `slot` is derived from subject and attribute."""
    yield Column("kind", Text, nullable=False, server_default="other")
    yield Column("memory_type", Text, nullable=False, server_default="semantic")
    for name in ("subject", "attribute", "slot", "speaker"):
        yield Column(name, Text)
    # `one` or `several` values at a time, if `pipeline.text.statements.slots` does not say it.
    yield Column("cardinality", Text)
    yield Column("confidence", Float)


# The keys by which words find a memory: hashes of its terms, and of its lane and entity ids. The
# project's id is in each hash, so no key is shared by two projects. Revision 0066 creates it.
WORD_KEYS = """CREATE OR REPLACE FUNCTION word_keys(
    project_id uuid, lane_id uuid,
    user_id text, agent_id text, app_id text, run_id text, terms text[]
) RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT array_agg(hashtextextended(key, seed)) FROM (
    SELECT DISTINCT 'term/' || term AS key FROM unnest(terms) AS t (term)
    UNION ALL
    SELECT key FROM unnest(ARRAY[
        'lane/' || lane_id, 'user_id/' || user_id, 'agent_id/' || agent_id, 'app_id/' || app_id,
        'run_id/' || run_id
    ]) AS o (key) WHERE key IS NOT NULL
) keys, hashtextextended(project_id::text, 0) AS seed
$$"""
event.listen(metadata, "before_create", DDL(WORD_KEYS))  # type: ignore[no-untyped-call]

# Time of a memory's last change, or later; rows of earlier releases have no `stored_at`.
CHANGED = "coalesce(stored_at, updated_at)"

# Columns that follow the owner in an index of the memories that reads show; those of the statements
# of a slot, and of the changes of a project, newest first.
SHOWN = ("state", "temporary", "created_at")
OF_SLOT = ("lane_id", "slot", "said_at", "id")
NEWEST_CHANGES = ("project_id", text("created_at DESC"), "memory_id", text("version DESC"))

memories = Table(
    "memories",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("lane_id", Uuid, nullable=False),
    *scope_ids(),
    # True in a temporary run: reads that do not name the run leave it out.
    Column("temporary", Boolean, nullable=False, server_default="false"),
    Column("text", Text, nullable=False),
    Column("text_hash", LargeBinary, nullable=False),
    terms(),
    Column("metadata", JSONB, nullable=False, server_default="{}"),
    Column("categories", ARRAY(Text), nullable=False, server_default="{}"),
    Column("attributed_to", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="ACTIVE"),
    Column("immutable", Boolean, nullable=False, server_default="false"),
    Column("expiration_date", Date),
    Column("embedding", LargeBinary, nullable=False),
    Column("embedder", Text, nullable=False),
    *projected(),
    # Provenance: the event and message of its text. NULL if a person wrote it.
    Column("event_id", Uuid),
    Column("message_ordinal", SmallInteger),
    # Time of the statement. A trigger copies `valid_from` for the previous release, which kept the
    # time of the statement there.
    time("said_at", nullable=False),
    # Time in the world since when it holds, or when it happens.
    time("valid_from", nullable=False),
    *_structure(),
    # The memory that replaced this one, which is RETIRED.
    Column("superseded_by", Uuid),
    # True if it was added without a comparison, and its slot has one value at a time: reads take
    # the newest statement of the slot as current.
    Column("appended", Boolean, nullable=False, server_default="false"),
    # The shadow whose memories replaced this one.
    Column("replaced_by", Uuid),
    # No model changes a memory that is pinned, or whose text a person has edited.
    Column("pinned", Boolean, nullable=False, server_default="false"),
    time("edited_at"),
    # Time when a person deleted it: events accepted before do not learn its texts again.
    time("forgotten_at"),
    now("created_at"),
    now("updated_at"),
    # Time since when the row is in this state, which a trigger keeps; NULL in rows of earlier
    # releases: `updated_at`.
    time("stored_at", server_default=func.now()),
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
    # The memories of an owner that reads show: a list walks them by age. Superseded ones and those
    # of temporary runs, which may be many more, are apart.
    Index("ix_memories_user_shown", "project_id", "user_id", *SHOWN),
    *by_owner("memories", *SHOWN, suffix="_shown", names=SHARED_OWNERS),
    # A read that names a run shows it also if it is temporary.
    *by_owner("memories", "created_at", names=["run_id"]),
    # The memories of a project that reads show without naming a run.
    partial("ix_memories_shown", "project_id", "created_at", where="NOT temporary"),
    # The newest changed memories of a lane, to which no older change of the history belongs.
    Index("ix_memories_changed", "lane_id", text(f"{CHANGED} DESC")),
    # A scope with many superseded memories is compared by its current ones.
    partial("ix_memories_active", "lane_id", where="state = 'ACTIVE'"),
    partial("ix_memories_slot", *OF_SLOT, where="slot IS NOT NULL AND state = 'ACTIVE'"),
    # What a scope knows about an attribute.
    partial(
        "ix_memories_cardinality",
        "lane_id",
        "attribute",
        "cardinality",
        where="cardinality IS NOT NULL AND state = 'ACTIVE'",
    ),
    partial("ix_memories_appended", *OF_SLOT, where="appended AND state = 'ACTIVE'"),
    # The memories that one has superseded, which its undo shows.
    partial("ix_memories_superseded", "superseded_by", where="superseded_by IS NOT NULL"),
    partial("ix_memories_forgotten", "lane_id", "text_hash", where="forgotten_at IS NOT NULL"),
    # Searches of large scopes by words: see WORD_KEYS. No pending list, which every search would
    # read.
    partial(
        "ix_memories_words",
        text("word_keys(project_id, lane_id, user_id, agent_id, app_id, run_id, terms)"),
        postgresql_using="gin",
        postgresql_with={"fastupdate": "off"},
        where="state = 'ACTIVE'",
    ),
    # Queries read them by age.
    partial("ix_memories_owed", "updated_at", where="owed"),
    partial("ix_memories_owed_embedder", "embedder", where="owed"),
)

CHANGED_AT: ColumnElement[Any] = func.coalesce(memories.c.stored_at, memories.c.updated_at)

# Columns of memories that no read returns, and that a past state does not keep.
NOT_KEPT = frozenset({"id", "text_hash", "projected_version", "owed", "stored_at", "forgotten_at"})

# States of memories that another one replaced: half-open intervals [stored_at, replaced_at). A
# trigger on `memories` writes them, so every change is kept, also those of an earlier release.
past_states = Table(
    "past_states",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=func.gen_random_uuid()),
    Column("memory_id", ForeignKey("memories.id", ondelete="CASCADE"), nullable=False),
    *(
        Column(
            column.name,
            column.type,
            nullable=column.nullable,
            # A trigger sets it.
            server_default="false" if column.name == "temporary" else None,
        )
        for column in memories.columns
        if column.name not in NOT_KEPT
    ),
    time("stored_at", nullable=False),
    time("replaced_at", nullable=False),
    Index("ix_past_states_memory", "memory_id", "replaced_at"),
    Index("ix_past_states_user", "project_id", "user_id", "replaced_at"),
    Index("ix_past_states_feed", "project_id", "replaced_at"),
    Index("ix_past_states_lane", "lane_id", "replaced_at"),
    partial("ix_past_states_slot", "lane_id", "slot", where="slot IS NOT NULL"),
    *by_owner("past_states", "replaced_at"),
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
    # The API key with which a person made the change.
    Column("key_id", Uuid),
    # NULL in rows of earlier releases: `valid_from`, and no structure.
    time("said_at"),
    time("valid_from", nullable=False),
    Column("structure", JSONB(none_as_null=True)),
    now("created_at"),
    # Time at which an import stored it; seals cover it, because the other times are older.
    time("imported_at"),
    # True if the writer knew that the memory is of a temporary run. A read skips these rows by an
    # index; the memory's own column decides what it shows.
    Column("temporary", Boolean, nullable=False, server_default="false"),
    partial("ix_memory_history_shown", *NEWEST_CHANGES, where="NOT temporary"),
    Index("ix_memory_history_feed", *NEWEST_CHANGES),
    partial("ix_memory_history_event", "event_id", where="event_id IS NOT NULL"),
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

# A sample of the searches that returned a memory: the newest ones, for a limited time.
memory_reads = Table(
    "memory_reads",
    metadata,
    Column("memory_id", ForeignKey("memories.id", ondelete="CASCADE"), primary_key=True),
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("project_id", Uuid, nullable=False),
    time("at", nullable=False, index=True),
    # The start of the question.
    Column("question", Text, nullable=False),
    # Place of the memory among the results, from 1.
    Column("place", SmallInteger, nullable=False),
    Column("score", Float, nullable=False),
)

# Numbers of searches that returned a memory, of projects with decay.
memory_accesses = Table(
    "memory_accesses",
    metadata,
    Column("memory_id", ForeignKey("memories.id", ondelete="CASCADE"), primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("accesses", Integer, nullable=False),
    time("last_at", nullable=False),
)
