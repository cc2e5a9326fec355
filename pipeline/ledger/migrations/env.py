"""Alembic's entry: it runs on the connection that pipeline.ledger.migrate hands over."""

from __future__ import annotations

from alembic import context

from pipeline.ledger.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
