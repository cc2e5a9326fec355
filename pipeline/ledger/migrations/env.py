"""Alembic's entry: it runs on the connection that pipeline.migrate hands over."""

from __future__ import annotations

from alembic import context

from pipeline.ledger.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # A migration's locks end with it, and its steps may commit: see online.py.
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
