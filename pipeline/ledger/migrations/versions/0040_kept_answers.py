"""kept answers: answers of models that dry runs have paid for"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "kept_answers",
        sa.Column("lane_id", sa.Uuid(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("answer", postgresql.JSONB(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("lane_id", "digest", name=op.f("pk_kept_answers")),
    )
    op.create_index("ix_kept_answers_expires_at", "kept_answers", ["expires_at"])


def downgrade() -> None:
    op.drop_table("kept_answers")
