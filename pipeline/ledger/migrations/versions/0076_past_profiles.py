"""past profiles: an index for the retention of replaced values"""

from __future__ import annotations

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0076"
down_revision = "0075"
branch_labels = None
depends_on = None


def upgrade() -> None:
    add_index(
        "ix_profile_fields_replaced",
        "profile_fields",
        ["replaced_at"],
        where="replaced_at IS NOT NULL",
    )


def downgrade() -> None:
    drop_index("ix_profile_fields_replaced", "profile_fields")
