"""suggestion of memory: indexes to find the open suggestion about a memory"""

from __future__ import annotations

from alembic import op

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE INDEX ix_suggestions_targets ON suggestions USING gin (targets jsonb_path_ops)"
        " WHERE state = 'OPEN'"
    )
    op.execute(
        "CREATE INDEX ix_suggestions_event ON suggestions (event_id) WHERE state = 'OPEN'"
    )


def downgrade() -> None:
    op.drop_index("ix_suggestions_event")
    op.drop_index("ix_suggestions_targets")
