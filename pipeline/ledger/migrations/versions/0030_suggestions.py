"""suggestions: changes of memories that were withheld and wait for a person"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

KINDS = "kind IN ('UPDATE', 'DELETE', 'COMBINE', 'RESOLVE')"
STATES = "state IN ('OPEN', 'ACCEPTED', 'REJECTED', 'DISMISSED', 'INVALID')"


def upgrade() -> None:
    op.create_table(
        "suggestions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("lane_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False, server_default="OPEN"),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Uuid()),
        sa.Column("fact_text", sa.Text()),
        sa.Column("targets", postgresql.JSONB(), nullable=False),
        sa.Column("proposed_text", sa.Text()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
        sa.Column("decided_at", sa.DateTime(timezone=True)),
        sa.Column("decided_by", sa.Text()),
        sa.CheckConstraint(KINDS, name=op.f("ck_suggestions_kind")),
        sa.CheckConstraint(STATES, name=op.f("ck_suggestions_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_suggestions")),
        sa.UniqueConstraint(
            "lane_id", "content_hash", name=op.f("uq_suggestions_lane_id_content_hash")
        ),
    )
    op.create_index(
        "ix_suggestions_project", "suggestions", ["project_id", sa.text("created_at DESC"), "id"]
    )
    op.add_column("receipts", sa.Column("suggestion_id", sa.Uuid()))


def downgrade() -> None:
    op.drop_column("receipts", "suggestion_id")
    op.drop_table("suggestions")
