"""events: an index of the rare ones of a lane, and those of other kinds than adds by age"""

from __future__ import annotations

import sqlalchemy as sa

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0082"
down_revision = "0081"

NOT_ADD = "event_type <> 'ADD'"
RARE = (
    f"{NOT_ADD} OR status IN ('FAILED', 'CANCELLED') OR failure_code IS NOT NULL"
    " OR graph_status IN ('FAILED', 'PARTIAL')"
)


def upgrade() -> None:
    add_index("ix_events_not_add_newest", "events", ["project_id", "created_at"], where=NOT_ADD)
    drop_index("ix_events_not_add", "events")
    newest: list[str | sa.TextClause] = ["lane_id", sa.text("created_at DESC"), "id"]
    add_index("ix_events_lane_rare", "events", newest, where=RARE)


def downgrade() -> None:
    drop_index("ix_events_lane_rare", "events")
    add_index("ix_events_not_add", "events", ["project_id", "lane_id"], where=NOT_ADD)
    drop_index("ix_events_not_add_newest", "events")
