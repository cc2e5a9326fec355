"""conflicts: statements that cannot both hold, and the conflict of a receipt's line"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "conflicts",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("lane_id", sa.Uuid(), nullable=False),
        sa.Column("slot", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("resolved_by", sa.Uuid()),
        sa.Column("resolution", sa.Text()),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
        sa.Column("resolved_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint(
            "resolution IN ('ONE', 'BOTH', 'TEXT')", name=op.f("ck_conflicts_resolution")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conflicts")),
    )
    op.create_index(op.f("ix_conflicts_lane_id"), "conflicts", ["lane_id"])
    newest = sa.text("created_at DESC")
    op.create_index("ix_conflicts_project", "conflicts", ["project_id", newest, "id"])
    op.create_table(
        "conflict_members",
        sa.Column("conflict_id", sa.Uuid(), nullable=False),
        sa.Column("memory_id", sa.Uuid(), nullable=False),
        sa.Column("against_id", sa.Uuid(), nullable=False),
        sa.Column("lane_id", sa.Uuid(), nullable=False),
        sa.Column("text_hash", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["conflict_id"],
            ["conflicts.id"],
            name=op.f("fk_conflict_members_conflict_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "conflict_id", "memory_id", "against_id", name=op.f("pk_conflict_members")
        ),
    )
    op.create_index(op.f("ix_conflict_members_memory_id"), "conflict_members", ["memory_id"])
    op.create_index(op.f("ix_conflict_members_lane_id"), "conflict_members", ["lane_id"])
    op.add_column("receipts", sa.Column("conflict_id", sa.Uuid()))


def downgrade() -> None:
    op.drop_column("receipts", "conflict_id")
    op.drop_table("conflict_members")
    op.drop_table("conflicts")
