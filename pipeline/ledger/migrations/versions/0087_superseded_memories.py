"""superseded memories: an index of those that a memory has superseded"""

from __future__ import annotations

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0087"
down_revision = "0086"


def upgrade() -> None:
    superseded = "superseded_by IS NOT NULL"
    add_index("ix_memories_superseded", "memories", ["superseded_by"], where=superseded)


def downgrade() -> None:
    drop_index("ix_memories_superseded", "memories")
