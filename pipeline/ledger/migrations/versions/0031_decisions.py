"""decisions: the event that an accepted suggestion became"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("suggestions", sa.Column("decision_event_id", sa.Uuid()))


def downgrade() -> None:
    op.drop_column("suggestions", "decision_event_id")
