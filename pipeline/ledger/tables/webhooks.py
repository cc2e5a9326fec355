"""Webhooks and their outbox.

    projects ─< webhooks ─< webhook_deliveries     one row for each thing told, until it has arrived

A delivery is written in the transaction of what it tells, so there is none without the other.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    SmallInteger,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from pipeline.ledger.tables import metadata

TIME = DateTime(timezone=True)

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("event_types", ARRAY(Text), nullable=False),
    # In clear, for it signs; shown once, when it is made.
    Column("secret", Text, nullable=False),
    Column("is_active", Boolean, nullable=False, server_default="true"),
    # Deliveries given up since one arrived; too many of them and the webhook is switched off.
    Column("dead_in_a_row", SmallInteger, nullable=False, server_default="0"),
    # Tries without any answer since it was made or switched on; NULL once it has answered.
    Column("silent_tries", SmallInteger, server_default="0"),
    Column("disabled_reason", Text),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    Column("updated_at", TIME, nullable=False, server_default=func.now()),
    Index("ix_webhooks_project", "project_id", "created_at"),
)

webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    # The receiver sees it as webhook-id: the same at every try.
    Column("id", Uuid, primary_key=True),
    Column("webhook_id", ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    Column("project_id", Uuid, nullable=False),
    # Whose words the body holds.
    Column("lane_id", Uuid, nullable=False),
    Column("event_type", Text, nullable=False),
    # Exactly what is signed and sent.
    Column("body", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="PENDING"),
    Column("attempts", SmallInteger, nullable=False, server_default="0"),
    # When it is tried next, or the lease of whoever tries it ends; NULL once it is over.
    Column("due_at", TIME, server_default=func.now()),
    # What the last try came to.
    Column("status_code", SmallInteger),
    Column("error", Text),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    Column("ended_at", TIME),
    CheckConstraint("state IN ('PENDING', 'DELIVERED', 'DEAD')", name="state"),
    CheckConstraint("(state = 'PENDING') = (due_at IS NOT NULL)", name="due"),
    Index(
        "ix_webhook_deliveries_due",
        "webhook_id",
        "due_at",
        postgresql_where=text("due_at IS NOT NULL"),
    ),
    Index("ix_webhook_deliveries_log", "webhook_id", "created_at"),
    Index("ix_webhook_deliveries_ended", "ended_at", postgresql_where=text("ended_at IS NOT NULL")),
)
