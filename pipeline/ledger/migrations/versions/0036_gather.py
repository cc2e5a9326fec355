"""gather: projects whose turns wait for each other"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("projects", sa.Column("gather", JSONB()))


def downgrade() -> None:
    op.drop_column("projects", "gather")
