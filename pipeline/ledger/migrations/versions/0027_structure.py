"""structure: what a memory is about, and the time of its statement apart from its time in the world"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
TEXTS = ("subject", "attribute", "slot", "speaker")
# Workers of the previous release know one time only, and go on while the new ones start.
COPY_TIME = """CREATE FUNCTION copy_valid_from() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.said_at := NEW.valid_from;
    RETURN NEW; END $$"""
COPIED = """CREATE TRIGGER said_at_copied BEFORE INSERT ON memories FOR EACH ROW
    WHEN (NEW.said_at IS NULL) EXECUTE FUNCTION copy_valid_from()"""


def upgrade() -> None:
    op.add_column("memories", sa.Column("said_at", TIME))
    op.add_column(
        "memories", sa.Column("kind", sa.Text(), nullable=False, server_default="other")
    )
    op.add_column(
        "memories", sa.Column("memory_type", sa.Text(), nullable=False, server_default="semantic")
    )
    for name in TEXTS:
        op.add_column("memories", sa.Column(name, sa.Text()))
    op.add_column("memories", sa.Column("confidence", sa.Float()))
    op.add_column("memories", sa.Column("superseded_by", sa.Uuid()))
    op.execute(COPY_TIME)
    op.execute(COPIED)
    op.execute("UPDATE memories SET said_at = valid_from")
    op.alter_column("memories", "said_at", nullable=False)
    op.create_index(
        "ix_memories_slot",
        "memories",
        ["lane_id", "slot"],
        postgresql_where=sa.text("slot IS NOT NULL"),
    )
    op.add_column("memory_history", sa.Column("said_at", TIME))
    op.add_column("memory_history", sa.Column("structure", postgresql.JSONB()))


def downgrade() -> None:
    op.drop_column("memory_history", "structure")
    op.drop_column("memory_history", "said_at")
    op.drop_index("ix_memories_slot", "memories")
    op.execute("DROP FUNCTION copy_valid_from CASCADE")
    for name in ("superseded_by", "confidence", *reversed(TEXTS), "memory_type", "kind", "said_at"):
        op.drop_column("memories", name)
