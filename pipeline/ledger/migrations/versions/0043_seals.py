"""seals: hash chains over events, receipts and history, of projects with tamper evidence"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

KINDS = "kind IN ('event', 'receipt', 'history', 'erasure')"


def upgrade() -> None:
    op.create_table(
        "seals",
        sa.Column("lane_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("row_id", sa.Uuid(), nullable=False),
        sa.Column("row_no", sa.Integer(), nullable=False),
        sa.Column("salt", sa.LargeBinary()),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("link", sa.LargeBinary(), nullable=False),
        sa.Column("erased_by", sa.Uuid()),
        sa.Column(
            "sealed_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
        sa.CheckConstraint(KINDS, name=op.f("ck_seals_kind")),
        sa.PrimaryKeyConstraint("lane_id", "number", name=op.f("pk_seals")),
    )
    op.create_index("ix_seals_row", "seals", ["row_id", "kind", "row_no"])
    op.create_index("ix_seals_project", "seals", ["project_id"])
    op.create_table(
        "seal_heads",
        sa.Column("lane_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("link", sa.LargeBinary(), nullable=False, server_default=""),
        sa.Column("signature", sa.LargeBinary(), nullable=False, server_default=""),
        sa.Column("reopened", sa.Boolean(), nullable=False, server_default="true"),
        sa.Column("sealed_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("lane_id", name=op.f("pk_seal_heads")),
    )
    op.create_index("ix_seal_heads_project_id", "seal_heads", ["project_id"])
    op.add_column("projects", sa.Column("tamper_evidence", sa.Boolean()))
    op.add_column("projects", sa.Column("sealed_until", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("projects", "sealed_until")
    op.drop_column("projects", "tamper_evidence")
    op.drop_table("seal_heads")
    op.drop_table("seals")
