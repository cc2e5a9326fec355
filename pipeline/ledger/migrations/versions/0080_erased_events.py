"""erased events: indexes for their retention"""

from __future__ import annotations

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0080"
down_revision = "0079"


def upgrade() -> None:
    erased = ["project_id", "erased_at"]
    add_index("ix_events_erased", "events", erased, where="erased_at IS NOT NULL")
    add_index("ix_erasures_created", "erasures", ["project_id", "created_at"])


def downgrade() -> None:
    drop_index("ix_erasures_created", "erasures")
    drop_index("ix_events_erased", "events")
