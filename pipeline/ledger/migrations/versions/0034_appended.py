"""appended: which memories were added without a comparison, and an index to find the newest of a slot"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

COLUMNS = ["lane_id", "slot", "said_at", "id"]


def upgrade() -> None:
    op.add_column(
        "memories", sa.Column("appended", sa.Boolean(), nullable=False, server_default="false")
    )
    op.drop_index("ix_memories_slot", "memories")
    for name, where in (
        ("ix_memories_slot", "slot IS NOT NULL AND state = 'ACTIVE'"),
        ("ix_memories_appended", "appended AND state = 'ACTIVE'"),
    ):
        op.create_index(name, "memories", COLUMNS, postgresql_where=sa.text(where))


def downgrade() -> None:
    op.drop_index("ix_memories_appended", "memories")
    op.drop_index("ix_memories_slot", "memories")
    op.create_index(
        "ix_memories_slot",
        "memories",
        ["lane_id", "slot"],
        postgresql_where=sa.text("slot IS NOT NULL"),
    )
    op.drop_column("memories", "appended")
