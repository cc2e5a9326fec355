"""compactions: deleted records of a collection, and pauses of its writers"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0083"
down_revision = "0082"


def upgrade() -> None:
    op.create_table(
        "compactions",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("deleted", sa.BigInteger(), nullable=False),
        sa.Column("paused_until", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("name", name="pk_compactions"),
    )


def downgrade() -> None:
    op.drop_table("compactions")
