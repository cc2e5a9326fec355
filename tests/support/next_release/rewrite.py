"""lanes: a type that rewrites the table, and a generated column"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "9005"
down_revision = "9004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "ALTER TABLE lanes ADD COLUMN double_width integer GENERATED ALWAYS AS (2 * width) STORED"
    )
    op.alter_column("lanes", "double_width", type_=sa.BigInteger())
