"""operations: retention, and the cost of tries that came to nothing"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.alter_column("stage_runs", "output", existing_type=postgresql.JSONB(), nullable=True)
    op.create_index(
        "ix_stage_runs_kept",
        "stage_runs",
        ["finished_at"],
        postgresql_where=sa.text("output IS NOT NULL"),
    )
    op.create_table(
        "failed_runs",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("ms", sa.Float(), nullable=False),
        sa.Column(
            "finished_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_failed_runs")),
    )
    op.create_index("ix_failed_runs_batch", "failed_runs", ["batch_id"])
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
    op.add_column(
        "events",
        sa.Column("earlier_tries", postgresql.JSONB(), server_default="[]", nullable=False),
    )


def downgrade() -> None:
    op.drop_column("events", "earlier_tries")
    op.drop_index("ix_idempotency_keys_created_at", table_name="idempotency_keys")
    op.drop_table("failed_runs")
    op.drop_index("ix_stage_runs_kept", table_name="stage_runs")
    op.execute("UPDATE stage_runs SET output = 'null' WHERE output IS NULL")
    op.alter_column("stage_runs", "output", existing_type=postgresql.JSONB(), nullable=False)
