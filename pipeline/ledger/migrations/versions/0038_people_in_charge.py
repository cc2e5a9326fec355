"""people in charge: memories that are pinned, edited or deleted by a person"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "memories", sa.Column("pinned", sa.Boolean(), nullable=False, server_default="false")
    )
    for name in ("edited_at", "forgotten_at"):
        op.add_column("memories", sa.Column(name, sa.DateTime(timezone=True)))
    op.create_index(
        "ix_memories_forgotten",
        "memories",
        ["lane_id", "text_hash"],
        postgresql_where=sa.text("forgotten_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_memories_forgotten", "memories")
    for name in ("forgotten_at", "edited_at", "pinned"):
        op.drop_column("memories", name)
