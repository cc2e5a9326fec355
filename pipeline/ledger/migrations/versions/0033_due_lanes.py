"""due lanes: an index that a lane's own statements cannot use; a lane that is not idle has due_at

The planner could choose the index by state for any statement with a condition on the state. With
statistics from an idle time it did, and read the busy lanes of the whole installation to find one
lane by its id.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

NAME = "ix_lanes_due"


def upgrade() -> None:
    _where("due_at IS NOT NULL")


def downgrade() -> None:
    _where("state <> 'IDLE'")


def _where(busy: str) -> None:
    op.drop_index(NAME, "lanes")
    op.create_index(NAME, "lanes", ["due_at"], postgresql_where=sa.text(busy))
