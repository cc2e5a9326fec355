"""structure: what a memory is about, and the time of its statement apart from its time in the world"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from pipeline.ledger.migrations.online import add_index, back_fill, require

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

TEXTS = ("subject", "attribute", "slot", "speaker")
# Workers of the previous release know one time only, and go on while the new ones start.
COPY_TIME = """CREATE OR REPLACE FUNCTION copy_valid_from() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.said_at := NEW.valid_from;
    RETURN NEW; END $$"""
COPIED = """CREATE OR REPLACE TRIGGER said_at_copied BEFORE INSERT ON memories FOR EACH ROW
    WHEN (NEW.said_at IS NULL) EXECUTE FUNCTION copy_valid_from()"""


COLUMNS = (
    "said_at timestamptz",
    "kind text NOT NULL DEFAULT 'other'",
    "memory_type text NOT NULL DEFAULT 'semantic'",
    *(f"{name} text" for name in TEXTS),
    "confidence float8",
    "superseded_by uuid",
)


def upgrade() -> None:
    # The steps at the end commit by themselves: all others may run again.
    for column in COLUMNS:
        op.execute(f"ALTER TABLE memories ADD COLUMN IF NOT EXISTS {column}")
    for column in ("said_at timestamptz", "structure jsonb"):
        op.execute(f"ALTER TABLE memory_history ADD COLUMN IF NOT EXISTS {column}")
    op.execute(COPY_TIME)
    op.execute(COPIED)
    back_fill("memories", "said_at = valid_from", where="said_at IS NULL")
    require("memories", "said_at")
    add_index("ix_memories_slot", "memories", ["lane_id", "slot"], where="slot IS NOT NULL")


def downgrade() -> None:
    op.drop_column("memory_history", "structure")
    op.drop_column("memory_history", "said_at")
    op.drop_index("ix_memories_slot", "memories")
    op.execute("DROP FUNCTION copy_valid_from CASCADE")
    for name in ("superseded_by", "confidence", *reversed(TEXTS), "memory_type", "kind", "said_at"):
        op.drop_column("memories", name)
