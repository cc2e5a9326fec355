"""stale memories: index those not yet in the vector index by time of change"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

NAME = "ix_memories_unprojected"


def upgrade() -> None:
    _lead_with("updated_at")


def downgrade() -> None:
    _lead_with("id")


def _lead_with(column: str) -> None:
    op.drop_index(NAME, "memories")
    stale = sa.text("projected_version <> version")
    op.create_index(NAME, "memories", [column], postgresql_where=stale)
