"""causes: why a lane waits, and whose calls a provider fails"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("cooldowns", sa.Column("project_id", sa.Uuid()))
    op.add_column("cooldowns", sa.Column("cause", sa.Text()))
    op.add_column("lanes", sa.Column("wait_cause", sa.Text()))


def downgrade() -> None:
    op.drop_column("lanes", "wait_cause")
    op.drop_column("cooldowns", "cause")
    op.drop_column("cooldowns", "project_id")
