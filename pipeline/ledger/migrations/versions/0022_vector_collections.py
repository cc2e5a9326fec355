"""vector collections: which ones were filled, so that an index that came back empty is noticed"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "vector_collections",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("records", sa.BigInteger, nullable=False, server_default="0"),
    )


def downgrade() -> None:
    op.drop_table("vector_collections")
