"""silent webhooks: those that have never answered are switched off sooner"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Of those there are already it is not known: they count as having answered.
    op.add_column("webhooks", sa.Column("silent_tries", sa.SmallInteger()))
    op.alter_column("webhooks", "silent_tries", server_default="0")


def downgrade() -> None:
    op.drop_column("webhooks", "silent_tries")
