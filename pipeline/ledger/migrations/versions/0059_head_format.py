"""format of signed heads: a sweeper of the release before cannot overwrite one"""

from __future__ import annotations

from alembic import op

revision = "0059"
down_revision = "0058"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_check_constraint(
        op.f("ck_seal_heads_format"),
        "seal_heads",
        "key_id = '' OR octet_length(signature) = 33",
    )


def downgrade() -> None:
    op.drop_constraint(op.f("ck_seal_heads_format"), "seal_heads")
