"""letters: a constraint that is checked beside writers, and one that is not"""

from __future__ import annotations

from alembic import op

from pipeline.ledger.migrations.online import add_check

revision = "9004"
down_revision = "9003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    add_check("ck_letters", "memories", "letters >= 0")
    op.create_check_constraint("ck_remark", "events", "length(remark) < 100")
