"""The tables of vectors: those of turns, which index is served, and what the next one holds.

A memory's vector stands in its own row, see schema.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
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

from pipeline.ledger.tables.projects import metadata, now

# One row a turn that is to be found by meaning, from its acceptance on: all it says but what a
# system says, and what is stored word for word and found as a memory.
turn_vectors = Table(
    "turn_vectors",
    metadata,
    Column("event_id", Uuid, primary_key=True),
    Column("ordinal", SmallInteger, primary_key=True),
    Column("lane_id", Uuid, nullable=False),
    # What the index knows it by.
    Column("id", Uuid, nullable=False, server_default=text("gen_random_uuid()")),
    # NULL until it is embedded, which no event waits for.
    Column("embedding", LargeBinary),
    Column("embedder", Text),
    # As those of a memory. A column says where they differ, for of that the planner keeps count:
    # of two columns compared it believes that they nearly always do, and reads all there is.
    Column("version", Integer, nullable=False, server_default="1"),
    Column("projected_version", Integer, nullable=False, server_default="0"),
    Column("owed", Boolean, Computed("projected_version <> version", persisted=True)),
    now("accepted_at"),
    UniqueConstraint("id"),
    Index("ix_turn_vectors_owed", "lane_id", "accepted_at", postgresql_where=text("owed")),
    Index("ix_turn_vectors_owed_age", "accepted_at", postgresql_where=text("owed")),
    Index("ix_turn_vectors_owed_embedder", "embedder", postgresql_where=text("owed")),
)

# The vector index that is served (LIVE), and the one that is built to take its place. What follows
# from a write of an index that is not LIVE is not believed.
vector_indexes = Table(
    "vector_indexes",
    metadata,
    Column("name", Text, primary_key=True),
    Column("embedder", Text, nullable=False),
    Column("state", Text, nullable=False),
    now("created_at"),
    CheckConstraint("state IN ('BUILDING', 'WHOLE', 'LIVE')", name="state"),
    Index("uq_vector_indexes_live", "state", unique=True, postgresql_where=text("state = 'LIVE'")),
)

# What the index under construction holds, memories and turns: versions as in their
# `projected_version`, and vectors where it takes another model's.
rebuilt = Table(
    "rebuilt",
    metadata,
    Column("memory_id", Uuid, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("embedding", LargeBinary),
)

# Collections that were created in the vector store, and how many records each held when the sweeper
# last looked. One that is known and not there, or holds far less, was lost.
vector_collections = Table(
    "vector_collections",
    metadata,
    Column("name", Text, primary_key=True),
    Column("records", BigInteger, nullable=False, server_default="0"),
)
