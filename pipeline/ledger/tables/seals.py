"""Seals: the hash chain of each lane, of projects with tamper evidence."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    Uuid,
)

from pipeline.ledger.tables.columns import metadata, now, time

seals = Table(
    "seals",
    metadata,
    Column("lane_id", Uuid, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    # The sealed row: event and replays, event and line, memory and version; or an erasure.
    Column("row_id", Uuid, nullable=False),
    Column("row_no", Integer, nullable=False),
    # SHA-256 of salt and content. An erasure deletes the salt, so that no guess can be confirmed.
    Column("salt", LargeBinary),
    Column("digest", LargeBinary, nullable=False),
    # SHA-256 of the link before and of this seal.
    Column("link", LargeBinary, nullable=False),
    # The erasure that deleted the row.
    Column("erased_by", Uuid),
    now("sealed_at"),
    CheckConstraint("kind IN ('event', 'receipt', 'history', 'erasure')", name="kind"),
    Index("ix_seals_row", "row_id", "kind", "row_no"),
    Index("ix_seals_project", "project_id"),
)

# The last seal of each lane, signed with the server's key.
seal_heads = Table(
    "seal_heads",
    metadata,
    Column("lane_id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False, index=True),
    Column("number", BigInteger, nullable=False, server_default="0"),
    Column("link", LargeBinary, nullable=False, server_default=""),
    Column("signature", LargeBinary, nullable=False, server_default=""),
    # True if an erasure or a replay has changed rows of any age: the next pass reads all of them.
    Column("reopened", Boolean, nullable=False, server_default="true"),
    time("sealed_at"),
)
