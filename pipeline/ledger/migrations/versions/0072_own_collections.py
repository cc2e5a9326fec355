"""own collections: the vectors of a large scope in a collection beside the buckets"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0072"
down_revision = "0071"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "own_collections",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        *(sa.Column(f"{kind}_id", sa.Text()) for kind in ("user", "agent", "app", "run")),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column(
            "requested_at",
            sa.DateTime(timezone=True),
            server_default=sa.func.now(),
            nullable=False,
        ),
        sa.Column("filled_at", sa.DateTime(timezone=True)),
        sa.Column("filled_id", sa.Uuid()),
        sa.Column("records", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint(
            "state IN ('FILLING', 'SERVED')", name=op.f("ck_own_collections_state")
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_own_collections")),
    )
    op.create_index(op.f("ix_own_collections_project_id"), "own_collections", ["project_id"])


def downgrade() -> None:
    op.drop_table("own_collections")
