"""Answers of models that dry runs have paid for."""

from __future__ import annotations

from sqlalchemy import Column, LargeBinary, Table, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from pipeline.ledger.tables.columns import metadata, now, time

kept_answers = Table(
    "kept_answers",
    metadata,
    Column("lane_id", Uuid, primary_key=True),
    # SHA-256 of the question and the model.
    Column("digest", LargeBinary, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("answer", JSONB, nullable=False),
    now("created_at"),
    time("expires_at", nullable=False, index=True),
)
