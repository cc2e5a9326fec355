"""Seals of projects with tamper evidence: chains, signed heads, and the queue of rows to seal.

seals              one row per sealed row, in one chain per lane
seal_heads         the last seal of each lane, signed
seal_buckets       roots over the heads of lanes
seal_projects      the head of a project, signed: state, number of lanes, hash of its buckets
seal_checkpoints   recorded heads of a project, which logs and webhooks carry outside
seal_queue         rows to seal; entries that cover erasures and replays
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    Uuid,
    func,
)

from pipeline.ledger.tables.columns import metadata, now, partial, time

ENTRY = "kind IN ('erasure', 'replay')"

seals = Table(
    "seals",
    metadata,
    Column("lane_id", Uuid, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    # The sealed row: event and replays, event and line, memory and version. Or an entry: an
    # erasure, or an event and its number of replays.
    Column("row_id", Uuid, nullable=False),
    Column("row_no", Integer, nullable=False),
    # SHA-256 of salt and content. An erasure deletes the salt, so that no guess can be confirmed.
    Column("salt", LargeBinary),
    Column("digest", LargeBinary, nullable=False),
    # SHA-256 of the link before and of this seal.
    Column("link", LargeBinary, nullable=False),
    # The erasure that deleted the row. Only valid if an entry of it covers this seal.
    Column("erased_by", Uuid),
    # Of an entry: numbers of the seals that it covers, such as 1-3,7. NULL in entries of earlier
    # releases.
    Column("covers", Text),
    now("sealed_at"),
    Index("ix_seals_row", "row_id", "kind", "row_no"),
    Index("ix_seals_project", "project_id"),
    partial("ix_seals_entries", "lane_id", where=ENTRY),
)

# The last seal of each lane, signed with the server's key.
seal_heads = Table(
    "seal_heads",
    metadata,
    Column("lane_id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("number", BigInteger, nullable=False, server_default="0"),
    Column("link", LargeBinary, nullable=False, server_default=""),
    Column("signature", LargeBinary, nullable=False, server_default=""),
    # Id of the key that signed it; empty in the format of earlier releases.
    Column("key_id", Text, nullable=False, server_default=""),
    # Only earlier releases use it.
    Column("reopened", Boolean, nullable=False, server_default="true"),
    time("sealed_at"),
    # 33 bytes: a format byte, which a sweeper of the release before does not write.
    CheckConstraint("key_id = '' OR octet_length(signature) = 33", name="format"),
    Index("ix_seal_heads_project", "project_id", "lane_id"),
)

seal_buckets = Table(
    "seal_buckets",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    Column("bucket", SmallInteger, primary_key=True),
    Column("lanes", BigInteger, nullable=False),
    Column("counter", BigInteger, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("root", LargeBinary, nullable=False),
)

# Columns: see pipeline.seals.heads.
seal_projects = Table(
    "seal_projects",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    Column("state", Text, nullable=False),
    time("since"),
    Column("counter", BigInteger, nullable=False, server_default="0"),
    Column("lanes", BigInteger, nullable=False, server_default="0"),
    time("sealed_until"),
    Column("digest", LargeBinary, nullable=False, server_default=""),
    Column("checkpoints", BigInteger, nullable=False, server_default="0"),
    time("checkpoint_at"),
    time("sealed_at"),
    Column("key_id", Text, nullable=False, server_default=""),
    Column("signature", LargeBinary, nullable=False, server_default=""),
    # Id of the key with which all heads are signed.
    Column("rotated_to", Text, nullable=False, server_default=""),
    CheckConstraint(
        "state IN ('adopting', 'starting', 'filling', 'complete', 'off')", name="state"
    ),
)

seal_checkpoints = Table(
    "seal_checkpoints",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("counter", BigInteger, nullable=False),
    Column("lanes", BigInteger, nullable=False),
    time("sealed_until"),
    Column("root", LargeBinary, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("signature", LargeBinary, nullable=False),
    now("created_at"),
)

# Triggers on events, receipts and memory_history insert the rows to seal.
seal_queue = Table(
    "seal_queue",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("project_id", Uuid, nullable=False),
    # event, receipt, history: a row to seal. lane: the rows of a lane, events after seq `row_no`
    # and memories after `row_id`. erasure, replay: an entry, signed by the process that made it.
    Column("kind", Text, nullable=False),
    Column("lane_id", Uuid),
    Column("row_id", Uuid, nullable=False),
    Column("row_no", BigInteger, nullable=False, server_default="0"),
    Column("covers", Text),
    Column("key_id", Text),
    Column("signature", LargeBinary),
    now("queued_at"),
    time("due_at", nullable=False, server_default=func.now()),
    Index("ix_seal_queue_due", "project_id", "due_at"),
    Index("ix_seal_queue_oldest", "project_id", "queued_at"),
    partial("ix_seal_queue_entries", "lane_id", where=ENTRY),
    partial("ix_seal_queue_lanes", "project_id", where="kind = 'lane'"),
)
