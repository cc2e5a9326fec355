"""imported_at: the time at which an import stored an event or a version of a memory"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0086"
down_revision = "0083"


def upgrade() -> None:
    for table in ("events", "memory_history"):
        op.add_column(table, sa.Column("imported_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    for table in ("memory_history", "events"):
        op.drop_column(table, "imported_at")
