"""Tables of vectors: vectors of turns, the vector indexes, and the rows of the next index.

A memory's vector is in its own row of `memories`.
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

# One row per message that searches by meaning can find, inserted when it is accepted. System and
# tool messages have none, nor have verbatim adds, which are found as memories.
turn_vectors = Table(
    "turn_vectors",
    metadata,
    Column("event_id", Uuid, primary_key=True),
    Column("ordinal", SmallInteger, primary_key=True),
    Column("lane_id", Uuid, nullable=False),
    # Its id in the index.
    Column("id", Uuid, nullable=False, server_default=text("gen_random_uuid()")),
    # NULL until it is embedded; no event waits for that.
    Column("embedding", LargeBinary),
    Column("embedder", Text),
    # As in `memories`. `owed` is a stored column, because it has statistics: comparing two columns,
    # the planner would expect nearly all rows to differ, and scan the table.
    Column("version", Integer, nullable=False, server_default="1"),
    Column("projected_version", Integer, nullable=False, server_default="0"),
    Column("owed", Boolean, Computed("projected_version <> version", persisted=True)),
    now("accepted_at"),
    UniqueConstraint("id"),
    Index("ix_turn_vectors_owed", "lane_id", "accepted_at", postgresql_where=text("owed")),
    Index("ix_turn_vectors_owed_age", "accepted_at", postgresql_where=text("owed")),
    Index("ix_turn_vectors_owed_embedder", "embedder", postgresql_where=text("owed")),
)

# The vector index that searches use (LIVE), and the one that is built to replace it. Only writes to
# the LIVE index update `projected_version`.
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

# Memories and turns in the index under construction: their versions there, and their vectors if it
# uses another model.
rebuilt = Table(
    "rebuilt",
    metadata,
    Column("memory_id", Uuid, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("embedding", LargeBinary),
)

# Collections of the vector store, with the number of records at the last check by the sweeper. A
# collection that is missing now, or has far fewer records, was lost.
vector_collections = Table(
    "vector_collections",
    metadata,
    Column("name", Text, primary_key=True),
    Column("records", BigInteger, nullable=False, server_default="0"),
)
