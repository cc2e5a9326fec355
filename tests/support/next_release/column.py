"""remarks: a column of events with a default, and a table with a foreign key"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "9001"
down_revision = "0091"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("events", sa.Column("remark", sa.Text(), server_default=sa.text("''")))
    op.create_table(
        "remarks",
        sa.Column("event_id", sa.Uuid(), sa.ForeignKey("events.id"), primary_key=True),
        sa.Column("remark", sa.Text(), nullable=False),
    )
