"""appended: which memories were added without a comparison, and an index to find the newest of a slot"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

COLUMNS = ["lane_id", "slot", "said_at", "id"]


def upgrade() -> None:
    op.execute(
        "ALTER TABLE memories ADD COLUMN IF NOT EXISTS appended boolean NOT NULL DEFAULT false"
    )
    drop_index("ix_memories_slot", "memories")
    add_index("ix_memories_slot", "memories", COLUMNS, where="slot IS NOT NULL AND state = 'ACTIVE'")
    add_index("ix_memories_appended", "memories", COLUMNS, where="appended AND state = 'ACTIVE'")


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
