"""the platform api"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

PROJECT_TEXTS = ("agent_custom_instructions", "includes", "excludes")


def upgrade() -> None:
    for name in PROJECT_TEXTS:
        op.add_column("projects", sa.Column(name, sa.Text()))
    op.add_column("projects", sa.Column("custom_categories", postgresql.JSONB()))
    op.add_column(
        "memories",
        sa.Column("categories", postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False),
    )
    op.add_column(
        "lanes",
        sa.Column("forgotten_seq", sa.BigInteger(), server_default="0", nullable=False),
    )
    op.create_table(
        "feedback",
        sa.Column("memory_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("feedback", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "feedback IN ('POSITIVE', 'NEGATIVE', 'VERY_NEGATIVE')",
            name=op.f("ck_feedback_feedback"),
        ),
        sa.ForeignKeyConstraint(
            ["memory_id"],
            ["memories.id"],
            name=op.f("fk_feedback_memory_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("memory_id", name=op.f("pk_feedback")),
    )
    op.create_table(
        "owners",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("metadata", postgresql.JSONB(), server_default="{}", nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint("kind IN ('user', 'agent', 'app', 'run')", name=op.f("ck_owners_kind")),
        sa.PrimaryKeyConstraint("project_id", "kind", "id", name=op.f("pk_owners")),
    )


def downgrade() -> None:
    op.drop_table("owners")
    op.drop_table("feedback")
    op.drop_column("lanes", "forgotten_seq")
    op.drop_column("memories", "categories")
    for name in ("custom_categories", *PROJECT_TEXTS):
        op.drop_column("projects", name)
