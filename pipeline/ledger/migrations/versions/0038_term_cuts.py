"""term_cuts: which version of the tokenizer the stored terms are of"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    table = op.create_table(
        "term_cuts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("cut", sa.SmallInteger(), nullable=False),
        sa.Column("position", JSONB()),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_term_cuts")),
    )
    op.bulk_insert(table, [{"name": name, "cut": 1} for name in ("memories", "messages")])


def downgrade() -> None:
    op.drop_table("term_cuts")
