"""Turns: the messages of events, and their vectors for searches by meaning."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary, SmallInteger, Table, Text, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB

from pipeline.ledger.tables.columns import metadata, now, partial, projected, terms, time

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
    # NULL for a short time after the accept of a long text: see pipeline.lanes.accept.
    terms(nullable=True),
    partial("ix_messages_uncut", "lane_id", "seq", where="terms IS NULL"),
    # For the messages before and after a message, by time.
    Index("ix_messages_order", "lane_id", "said_at", "seq", "ordinal"),
)

# One row per message that searches by meaning can find, inserted when it is accepted. System and
# tool messages have none, nor have verbatim adds, which are found as memories.
turn_vectors = Table(
    "turn_vectors",
    metadata,
    Column("event_id", Uuid, primary_key=True),
    Column("ordinal", SmallInteger, primary_key=True),
    Column("lane_id", Uuid, nullable=False),
    # Its id in the index.
    Column("id", Uuid, nullable=False, unique=True, server_default=text("gen_random_uuid()")),
    # NULL until it is embedded; no event waits for that.
    Column("embedding", LargeBinary),
    Column("embedder", Text),
    *projected(),
    now("accepted_at"),
    partial("ix_turn_vectors_owed", "lane_id", "accepted_at", where="owed"),
    partial("ix_turn_vectors_owed_age", "accepted_at", where="owed"),
    partial("ix_turn_vectors_owed_embedder", "embedder", where="owed"),
)
