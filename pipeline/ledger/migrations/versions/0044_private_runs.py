"""private runs: temporary and incognito sessions"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "private_runs",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("privacy", sa.Text(), nullable=False),
        sa.Column("erasure_id", sa.Uuid(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
        sa.CheckConstraint(
            "privacy IN ('temporary', 'incognito')", name=op.f("ck_private_runs_privacy")
        ),
        sa.PrimaryKeyConstraint("project_id", "run_id", name=op.f("pk_private_runs")),
    )
    op.create_index(
        "ix_private_runs_expires",
        "private_runs",
        ["expires_at"],
        postgresql_where=sa.text("expires_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_table("private_runs")
