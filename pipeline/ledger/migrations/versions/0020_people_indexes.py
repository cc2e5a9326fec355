"""indexes for erasures and switches: what is no add, and the memories of a lane"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_events_not_add",
        "events",
        ["project_id", "lane_id"],
        postgresql_where=sa.text("event_type <> 'ADD'"),
    )
    op.create_index("ix_memories_lane", "memories", ["lane_id"])


def downgrade() -> None:
    op.drop_index("ix_memories_lane", "memories")
    op.drop_index("ix_events_not_add", "events")
