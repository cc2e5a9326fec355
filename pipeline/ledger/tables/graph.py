"""The graph: entities of a scope, relations between them with both their times, and receipts.

Also the outbox of changes for a graph server that mirrors it.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from pipeline.ledger.tables.columns import metadata, now, partial, time

entities = Table(
    "entities",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("lane_id", Uuid, nullable=False),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    # The name as it is compared; NULL in rows of earlier releases: `name_key`.
    Column("plain_name", Text),
    # The role that tells a person from another one of the same name: brother, colleague.
    Column("qualifier", Text),
    # Number of batches that named it.
    Column("mentions", Integer, nullable=False, server_default="1"),
    time("mentioned_at"),
    # The entity that names the same thing, and the last one of that chain. Relations stay with the
    # entity that a fact names, so that a merge can be taken back; reads show them under the root.
    Column("merged_into", Uuid),
    Column("root_id", Uuid),
    Column("merge_reason", Text),
    time("merged_at"),
    # Its earlier merges, oldest first: merged_into, merge_reason, merged_at, and replaced_at, the
    # time at which a split took the merge back. A trigger writes them, and keeps the newest 100.
    Column("past_merges", JSONB(none_as_null=True)),
    now("created_at"),
    UniqueConstraint("lane_id", "name_key"),
)
PLAIN = func.coalesce(entities.c.plain_name, entities.c.name_key)
Index("ix_entities_plain", entities.c.lane_id, PLAIN)
# For walks over very many scopes, which start at the entities that a query names.
Index(
    "ix_entities_name",
    entities.c.project_id,
    PLAIN,
    entities.c.mentioned_at.desc().nulls_last(),
)
Index("ix_entities_root", entities.c.root_id, postgresql_where=entities.c.root_id.is_not(None))

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
    # The message and the memory that state it; NULL in rows of earlier releases.
    Column("message_ordinal", SmallInteger),
    Column("memory_id", Uuid),
    # The event that ended it, so that an undo can restore it.
    Column("ended_by", Uuid),
    # Valid time: true in the world from … to. Transaction time: known here from … to.
    time("valid_from", nullable=False),
    time("valid_to"),
    now("created_at"),
    time("expired_at"),
    # Its earlier ends, oldest first: valid_to, expired_at, ended_by, and replaced_at, the time at
    # which an undo withdrew this end, or another one replaced it. A trigger writes them, and keeps
    # the newest 100: an older end is read as none.
    Column("past_ends", JSONB(none_as_null=True)),
    partial(
        "uq_relations_current",
        "lane_id",
        "source_id",
        "relation",
        "destination_id",
        unique=True,
        where="expired_at IS NULL",
    ),
    Index("ix_relations_event", "event_id"),
    partial("ix_relations_ended", "ended_by", where="ended_by IS NOT NULL"),
    Index("ix_relations_source", "source_id"),
    Index("ix_relations_destination", "destination_id"),
    partial("ix_relations_memory", "memory_id", where="memory_id IS NOT NULL"),
    Index("ix_relations_names", "project_id", "relation", "lane_id"),
    Index("ix_relations_lane", "lane_id"),
    Index("ix_relations_feed", "project_id", text("valid_from DESC"), "id"),
)

# The effect of each fact on the graph, beside the receipt of the memories.
graph_receipts = Table(
    "graph_receipts",
    metadata,
    Column("event_id", Uuid, primary_key=True),
    Column("ordinal", SmallInteger, primary_key=True),
    Column("outcome", Text, nullable=False),
    Column("relation_id", Uuid),
    Column("memory_id", Uuid),
    Column("source", Text, nullable=False),
    Column("relation", Text, nullable=False),
    Column("destination", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("message_ordinal", SmallInteger, nullable=False),
)

# The graph server that mirrors the graph, by its address: one row, or none. Searches use the server
# once it is filled: until then the whole graph is queued for it.
graph_mirrors = Table(
    "graph_mirrors",
    metadata,
    Column("name", Text, primary_key=True),
    time("filled_at"),
)

# Rows of the graph that changed, and that the graph server does not have yet, in order. Written by
# triggers. `gone`: the entity was deleted; the relation was deleted, or has left its `source_id`.
graph_outbox = Table(
    "graph_outbox",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("lane_id", Uuid, nullable=False),
    Column("entity_id", Uuid),
    Column("relation_id", Uuid),
    Column("source_id", Uuid),
    Column("gone", Boolean, nullable=False, server_default="false"),
    now("queued_at"),
    Index("ix_graph_outbox_lane", "project_id", "lane_id"),
)
