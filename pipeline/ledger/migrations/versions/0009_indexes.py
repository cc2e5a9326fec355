"""indexes: which vector index is served, and what the next one holds"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "vector_indexes",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("embedder", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.CheckConstraint(
            "state IN ('BUILDING', 'WHOLE', 'LIVE')", name=op.f("ck_vector_indexes_state")
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_vector_indexes")),
    )
    op.create_index(
        "uq_vector_indexes_live",
        "vector_indexes",
        ["state"],
        unique=True,
        postgresql_where=sa.text("state = 'LIVE'"),
    )
    op.create_table(
        "rebuilt",
        sa.Column("memory_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("embedding", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("memory_id", name=op.f("pk_rebuilt")),
    )
    # Records carry their owner as one key from here on: all of them are written once more, and read
    # from the ledger until then.
    op.execute("UPDATE memories SET projected_version = 0")


def downgrade() -> None:
    op.drop_table("rebuilt")
    op.drop_table("vector_indexes")
