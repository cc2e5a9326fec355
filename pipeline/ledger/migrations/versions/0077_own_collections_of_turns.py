"""own collections of turns: the position in the turns of a lane"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0077"
down_revision = "0076"


def upgrade() -> None:
    op.add_column("own_collections", sa.Column("filled_seq", sa.BigInteger()))


def downgrade() -> None:
    op.drop_column("own_collections", "filled_seq")
