"""memories: index of the statements that a later one superseded, by time"""

from __future__ import annotations

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0081"
down_revision = "0080"
branch_labels = None
depends_on = None


def upgrade() -> None:
    superseded = "superseded_by IS NOT NULL AND state = 'RETIRED'"
    add_index("ix_memories_superseded", "memories", ["lane_id", "said_at"], where=superseded)


def downgrade() -> None:
    drop_index("ix_memories_superseded", "memories")
