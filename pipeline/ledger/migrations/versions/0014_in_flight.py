"""open events: drop the index by status; an open event has no completed_at

The planner could choose that index for any statement with a condition on the status. With
statistics from before a burst it did, and read the open events of the whole installation to find
the eight events of one batch.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

OPEN = "status IN ('PENDING', 'RUNNING')"


def upgrade() -> None:
    op.drop_index("ix_events_in_flight", "events")
    op.create_check_constraint(
        op.f("ck_events_completed"), "events", f"({OPEN}) = (completed_at IS NULL)"
    )


def downgrade() -> None:
    op.drop_constraint(op.f("ck_events_completed"), "events")
    op.create_index("ix_events_in_flight", "events", ["status"], postgresql_where=sa.text(OPEN))
