"""shadows: replays of a whole scope"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "shadows",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("app_id", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("custom_instructions", sa.Text(), nullable=True),
        sa.Column("llm_model", sa.Text(), nullable=True),
        sa.Column("embedder_model", sa.Text(), nullable=True),
        sa.Column("recorded", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("copied_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("switched_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shadows")),
    )
    op.create_index("ix_shadows_project", "shadows", ["project_id", "created_at"])
    op.add_column("events", sa.Column("copy_of", sa.Uuid(), nullable=True))
    op.add_column("memories", sa.Column("replaced_by", sa.Uuid(), nullable=True))


def downgrade() -> None:
    op.drop_column("memories", "replaced_by")
    op.drop_column("events", "copy_of")
    op.drop_table("shadows")
