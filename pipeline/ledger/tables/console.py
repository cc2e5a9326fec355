"""Tables of the console: the audit log, saved views, and samples of the queue for charts."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    Uuid,
    func,
)
from sqlalchemy.dialects.postgresql import JSONB

from pipeline.ledger.tables.columns import metadata, now, time

# Requests that change something, adds excepted. No text and no id of a user: `action` is the method
# and the path of the route with the names of its parameters.
audit_entries = Table(
    "audit_entries",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    Column("id", BigInteger, Identity(), primary_key=True),
    time("at", nullable=False, server_default=func.now(), index=True),
    # The key, and the user's token that it made, if the request had one.
    Column("key_id", Uuid, nullable=False),
    Column("token_id", Uuid),
    Column("action", Text, nullable=False),
    # The memory, event, key or other row that the request is about.
    Column("target", Uuid),
    # Status of the response; NULL if the process ended before it.
    Column("status", SmallInteger),
)

# Addresses of pages of the console, by name, for all keys of the project.
saved_views = Table(
    "saved_views",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=func.gen_random_uuid()),
    Column("project_id", ForeignKey("projects.id"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("path", Text, nullable=False),
    # The query string, by name.
    Column("query", JSONB, nullable=False),
    now("created_at"),
)

# The books and the ages of the queue of a busy project, once a minute.
queue_samples = Table(
    "queue_samples",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    time("minute", primary_key=True),
    # Numbers since the project was created.
    *(
        Column(name, BigInteger, nullable=False)
        for name in ("accepted", "succeeded", "failed", "searches", "memories")
    ),
    Column("pending", Integer, nullable=False),
    Column("running", Integer, nullable=False),
    # Age of the oldest event that can be processed, and of the oldest that waits.
    Column("ready_s", Double, nullable=False),
    Column("waiting_s", Double, nullable=False),
    Index("ix_queue_samples_minute", "minute"),
)
