"""few rows: indexes of temporary lanes and of the current memories of a scope"""

from __future__ import annotations

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0061"
down_revision = "0060"
branch_labels = None
depends_on = None


def upgrade() -> None:
    add_index("ix_lanes_temporary", "lanes", ["id"], where="temporary")
    add_index("ix_memories_active", "memories", ["lane_id"], where="state = 'ACTIVE'")


def downgrade() -> None:
    drop_index("ix_memories_active", "memories")
    drop_index("ix_lanes_temporary", "lanes")
