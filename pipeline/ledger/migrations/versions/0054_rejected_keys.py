"""rejected_keys: the code of a provider's last failure, so that a wrong key keeps its name"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0054"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("cooldowns", sa.Column("code", sa.Text()))


def downgrade() -> None:
    op.drop_column("cooldowns", "code")
