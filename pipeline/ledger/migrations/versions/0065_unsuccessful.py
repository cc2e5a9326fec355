"""unsuccessful: an index of the failed and cancelled events, which lists show together"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0065"
down_revision = "0064"
branch_labels = None
depends_on = None


def upgrade() -> None:
    add_index(
        "ix_events_unsuccessful",
        "events",
        ["project_id", "created_at"],
        where="status IN ('FAILED', 'CANCELLED')",
    )
    drop_index("ix_events_failed", "events")


def downgrade() -> None:
    failed = sa.text("status = 'FAILED'::text")
    op.create_index("ix_events_failed", "events", ["project_id", "created_at"], postgresql_where=failed)
    drop_index("ix_events_unsuccessful", "events")
