"""stale memories: a generated column `owed`, as for turns

The planner has no statistics about a comparison of two columns, so it did not know that nearly no
memory is stale: each search read all memories of a user, vectors included, and found none. It has
statistics about a column.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

OWED = "projected_version <> version"


def upgrade() -> None:
    op.drop_index("ix_memories_unprojected", "memories")
    op.add_column("memories", sa.Column("owed", sa.Boolean(), sa.Computed(OWED, persisted=True)))
    op.create_index(
        "ix_memories_owed", "memories", ["updated_at"], postgresql_where=sa.text("owed")
    )


def downgrade() -> None:
    op.drop_index("ix_memories_owed", "memories")
    op.drop_column("memories", "owed")
    op.create_index(
        "ix_memories_unprojected", "memories", ["updated_at"], postgresql_where=sa.text(OWED)
    )
