"""remarks: an index beside writers, and the one that it replaces"""

from __future__ import annotations

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "9002"
down_revision = "9001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    add_index("ix_events_remark", "events", ["remark"], where="remark <> ''")
    drop_index("ix_events_remark", "events")
