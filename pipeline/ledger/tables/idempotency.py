"""Idempotency keys: keys that clients send to repeat an add safely."""

from __future__ import annotations

from sqlalchemy import Column, Index, LargeBinary, Table, Text, Uuid

from pipeline.ledger.tables.columns import metadata, now

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    Column("key", Text, primary_key=True),
    # SHA-256 of the request: the same key with another body is an error of the client.
    Column("digest", LargeBinary, nullable=False),
    Column("event_id", Uuid, nullable=False),
    now("created_at"),
    Index("ix_idempotency_keys_created_at", "created_at"),
    # An erasure finds the keys of the events that it deletes.
    Index("ix_idempotency_keys_event_id", "event_id"),
)
