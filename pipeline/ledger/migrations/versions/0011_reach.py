"""erasure and webhooks"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

IDS = postgresql.ARRAY(sa.Uuid())
WORDS = postgresql.ARRAY(sa.Text())


TIME = sa.DateTime(timezone=True)


def now(name: str) -> sa.Column[object]:
    return sa.Column(name, TIME, server_default=sa.text("now()"), nullable=False)


def upgrade() -> None:
    op.add_column("events", sa.Column("erased_at", TIME))
    whose_outputs()
    erasures()
    webhooks()
    deliveries()


def whose_outputs() -> None:
    op.add_column("stage_runs", sa.Column("lane_id", sa.Uuid()))
    op.execute("""
        UPDATE stage_runs SET lane_id = e.lane_id
        FROM events e WHERE e.batch_id = stage_runs.batch_id
    """)
    # Outputs of batches that no event belongs to any more: no code reads them.
    op.execute("DELETE FROM stage_runs WHERE lane_id IS NULL")
    op.alter_column("stage_runs", "lane_id", nullable=False)
    op.create_index("ix_stage_runs_lane", "stage_runs", ["lane_id"])


def erasures() -> None:
    op.create_table(
        "erasures",
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("counts", postgresql.JSONB(), nullable=False),
        sa.Column("memory_ids", IDS),
        sa.Column("due_at", TIME),
        now("created_at"),
        sa.CheckConstraint(
            "kind IN ('user', 'agent', 'app', 'run')", name=op.f("ck_erasures_kind")
        ),
        sa.CheckConstraint(
            "(memory_ids IS NULL) = (due_at IS NULL)", name=op.f("ck_erasures_due")
        ),
        sa.ForeignKeyConstraint(
            ["event_id"], ["events.id"], name=op.f("fk_erasures_event_id")
        ),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_erasures")),
    )
    op.create_index(
        "ix_erasures_due", "erasures", ["due_at"], postgresql_where=sa.text("due_at IS NOT NULL")
    )




def webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("event_types", WORDS, nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("is_active", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("dead_in_a_row", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("disabled_reason", sa.Text()),
        now("created_at"),
        now("updated_at"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_index("ix_webhooks_project", "webhooks", ["project_id", "created_at"])


def deliveries() -> None:
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("webhook_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("lane_id", sa.Uuid(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="PENDING", nullable=False),
        sa.Column("attempts", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("due_at", TIME, server_default=sa.text("now()")),
        sa.Column("status_code", sa.SmallInteger()),
        sa.Column("error", sa.Text()),
        now("created_at"),
        sa.Column("ended_at", TIME),
        sa.CheckConstraint(
            "state IN ('PENDING', 'DELIVERED', 'DEAD')", name=op.f("ck_webhook_deliveries_state")
        ),
        sa.CheckConstraint(
            "(state = 'PENDING') = (due_at IS NOT NULL)", name=op.f("ck_webhook_deliveries_due")
        ),
        sa.ForeignKeyConstraint(
            ["webhook_id"],
            ["webhooks.id"],
            name=op.f("fk_webhook_deliveries_webhook_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_deliveries")),
    )
    op.create_index(
        "ix_webhook_deliveries_due",
        "webhook_deliveries",
        ["webhook_id", "due_at"],
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_index(
        "ix_webhook_deliveries_log", "webhook_deliveries", ["webhook_id", "created_at"]
    )
    op.create_index(
        "ix_webhook_deliveries_ended",
        "webhook_deliveries",
        ["ended_at"],
        postgresql_where=sa.text("ended_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_table("webhook_deliveries")
    op.drop_table("webhooks")
    op.drop_table("erasures")
    op.drop_column("stage_runs", "lane_id")
    op.drop_column("events", "erased_at")
