"""cleared lanes: which turns a delete_all hid, so that its undo shows them again

What was cleared before this release has no rows here: its undo brings back the memories alone.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "cleared_lanes",
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("lane_id", sa.Uuid(), nullable=False),
        sa.Column("before_seq", sa.BigInteger(), nullable=False),
        sa.Column("after_seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("event_id", "lane_id", name="pk_cleared_lanes"),
    )
    op.create_index("ix_cleared_lanes_lane_id", "cleared_lanes", ["lane_id"])


def downgrade() -> None:
    op.drop_table("cleared_lanes")
