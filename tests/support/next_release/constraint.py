"""letters: a constraint that is checked beside writers, and one that is not"""

from __future__ import annotations

from alembic import op

revision = "9004"
down_revision = "9003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE memories ADD CONSTRAINT ck_letters CHECK (letters >= 0) NOT VALID")
    op.execute("ALTER TABLE memories VALIDATE CONSTRAINT ck_letters")
    op.create_check_constraint("ck_remark", "events", "length(remark) < 100")
