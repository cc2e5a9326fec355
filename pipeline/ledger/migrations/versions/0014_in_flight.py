"""in flight: told by the end that is missing

An index of open events by status stood open to every statement that says which status it wants. A
planner whose statistics are from before a burst takes it for a short way, and reads the backlog of
the whole installation for the eight events of a batch.
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
