"""The graph: entities of a scope, and relations between them with both their times."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Table, Text, UniqueConstraint, Uuid, text

from pipeline.ledger.tables.columns import metadata, now, time

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
