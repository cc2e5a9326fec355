"""priority: the last event of normal priority of each lane"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0075"
down_revision = "0074"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("lanes", sa.Column("normal_seq", sa.BigInteger()))


def downgrade() -> None:
    op.drop_column("lanes", "normal_seq")
