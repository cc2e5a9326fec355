"""Cooldowns of unreachable providers: the state of the circuit breakers.

While the row exists, only one caller at a time may call the provider.
"""

from __future__ import annotations

from sqlalchemy import Column, Integer, Table, Text, Uuid

from pipeline.ledger.tables.columns import metadata, now, time

cooldowns = Table(
    "cooldowns",
    metadata,
    Column("provider", Text, primary_key=True),
    Column("failures", Integer, nullable=False, server_default="1"),
    time("probe_at", nullable=False),
    now("since"),
    # The only project whose calls failed; NULL if calls of several failed, or if the provider sent
    # a time to wait.
    Column("project_id", Uuid),
    # Error of the last call, without users' texts.
    Column("cause", Text),
    # Failure code of the last call: LLM_UNAVAILABLE, or LLM_REJECTED for a wrong key. NULL in rows
    # of a release without this column.
    Column("code", Text),
)
