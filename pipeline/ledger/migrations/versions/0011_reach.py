"""erasure and webhooks"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0007"
branch_labels = None
depends_on = None

IDS = postgresql.ARRAY(sa.Uuid())


TIME = sa.DateTime(timezone=True)


def now(name: str) -> sa.Column[object]:
    return sa.Column(name, TIME, server_default=sa.text("now()"), nullable=False)


def upgrade() -> None:
    op.add_column("events", sa.Column("erased_at", TIME))
    whose_outputs()
    erasures()


def whose_outputs() -> None:
    op.add_column("stage_runs", sa.Column("lane_id", sa.Uuid()))
    op.execute("""
        UPDATE stage_runs SET lane_id = e.lane_id
        FROM events e WHERE e.batch_id = stage_runs.batch_id
    """)
    # Batches that were taken apart: nobody reads them, and nobody could say whose they were.
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




def downgrade() -> None:
    op.drop_table("erasures")
    op.drop_column("stage_runs", "lane_id")
    op.drop_column("events", "erased_at")
