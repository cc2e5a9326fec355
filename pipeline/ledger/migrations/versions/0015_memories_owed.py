"""memories owed to the vector index: a column, as turns have one

That nearly none are owed is more than a planner can know of one column compared to another: it read
all memories of a user, vectors included, to find at each search that none was owed. Of a column it
knows.
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
