"""outage and load"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_events_completed", "events", ["completed_at"])
    op.create_table(
        "cooldowns",
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default="1", nullable=False),
        sa.Column("probe_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "since", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("provider", name=op.f("pk_cooldowns")),
    )


def downgrade() -> None:
    op.drop_table("cooldowns")
    op.drop_index("ix_events_completed", "events")
