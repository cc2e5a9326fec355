"""Webhooks and their outbox.

    projects ─< webhooks ─< webhook_deliveries     one row per notification

A delivery is inserted in the transaction of the change it reports, so neither exists alone.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    SmallInteger,
    Table,
    Text,
    Uuid,
    func,
)
from sqlalchemy.dialects.postgresql import ARRAY

from pipeline.ledger.tables.columns import metadata, now, partial, time

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("event_types", ARRAY(Text), nullable=False),
    # In clear, because deliveries are signed with it; shown once, when the webhook is created.
    Column("secret", Text, nullable=False),
    Column("is_active", Boolean, nullable=False, server_default="true"),
    # Dead deliveries since the last success; too many of them disable the webhook.
    Column("dead_in_a_row", SmallInteger, nullable=False, server_default="0"),
    # Tries without an answer since it was created or enabled; NULL once it has answered.
    Column("silent_tries", SmallInteger, server_default="0"),
    Column("disabled_reason", Text),
    now("created_at"),
    now("updated_at"),
    Index("ix_webhooks_project", "project_id", "created_at"),
)

webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    # The receiver gets it as `webhook-id`, the same at every try.
    Column("id", Uuid, primary_key=True),
    Column("webhook_id", ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    Column("project_id", Uuid, nullable=False),
    # The lane of the memory or event in the body.
    Column("lane_id", Uuid, nullable=False),
    Column("event_type", Text, nullable=False),
    # Exactly what is signed and sent.
    Column("body", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="PENDING"),
    Column("attempts", SmallInteger, nullable=False, server_default="0"),
    # Time of the next try, or the end of a running try's lease; NULL once it has ended.
    time("due_at", server_default=func.now()),
    # Result of the last try.
    Column("status_code", SmallInteger),
    Column("error", Text),
    now("created_at"),
    time("ended_at"),
    CheckConstraint("state IN ('PENDING', 'DELIVERED', 'DEAD')", name="state"),
    CheckConstraint("(state = 'PENDING') = (due_at IS NOT NULL)", name="due"),
    partial("ix_webhook_deliveries_due", "webhook_id", "due_at", where="due_at IS NOT NULL"),
    Index("ix_webhook_deliveries_log", "webhook_id", "created_at"),
    partial("ix_webhook_deliveries_ended", "ended_at", where="ended_at IS NOT NULL"),
)
