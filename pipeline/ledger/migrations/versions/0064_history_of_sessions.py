"""history of sessions: memory_history.temporary, and an index of the rows that reads show"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0064"
down_revision = "0063"
branch_labels = None
depends_on = None


def upgrade() -> None:
    temporary: sa.Column[bool] = sa.Column(
        "temporary", sa.Boolean(), nullable=False, server_default="false"
    )
    op.add_column("memory_history", temporary, if_not_exists=True)
    op.execute(
        """UPDATE memory_history SET temporary = true
        FROM lanes l JOIN memories m ON m.lane_id = l.id
        WHERE l.temporary AND memory_history.memory_id = m.id AND NOT memory_history.temporary"""
    )
    add_index(
        "ix_memory_history_shown",
        "memory_history",
        ["project_id", sa.text("created_at DESC"), "memory_id", sa.text("version DESC")],
        where="NOT temporary",
    )


def downgrade() -> None:
    drop_index("ix_memory_history_shown", "memory_history")
    op.drop_column("memory_history", "temporary")
