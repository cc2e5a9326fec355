"""Tables of the vector index: the indexes, the rows of the next one, and the collections.

A memory's vector is in its own row of `memories`, a turn's vector in `turn_vectors`.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, Integer, LargeBinary, Table, Text, Uuid

from pipeline.ledger.tables.columns import metadata, now, partial, scope_ids, time

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
    partial("uq_vector_indexes_live", "state", unique=True, where="state = 'LIVE'"),
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

# Records deleted from a collection since its last compaction, and until when its writers wait for
# the end of a compaction.
compactions = Table(
    "compactions",
    metadata,
    Column("name", Text, primary_key=True),
    Column("deleted", BigInteger, nullable=False),
    time("paused_until"),
)

# Collections beside the buckets, each with the vectors of one large scope: of all memories, or of
# all turns, with these ids. FILLING: written, but not complete. SERVED: complete, and read instead
# of the buckets.
own_collections = Table(
    "own_collections",
    metadata,
    Column("name", Text, primary_key=True),
    Column("project_id", Uuid, nullable=False, index=True),
    *scope_ids(),
    Column("state", Text, nullable=False),
    now("requested_at"),
    # The last row that was written: see vector_index.own_collections.Position.
    time("filled_at"),
    Column("filled_id", Uuid),
    Column("filled_seq", BigInteger),
    # Number of records at the last check.
    Column("records", BigInteger, nullable=False, server_default="0"),
    time("checked_at"),
    CheckConstraint("state IN ('FILLING', 'SERVED')", name="state"),
)
