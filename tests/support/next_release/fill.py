"""letters: the length of each memory's text, filled in batches"""

from __future__ import annotations

from alembic import op

from pipeline.ledger.migrations.online import back_fill, in_batches, require

revision = "9003"
down_revision = "9002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE memories ADD COLUMN IF NOT EXISTS letters integer")
    back_fill("memories", "letters = length(text)", where="letters IS NULL")
    require("memories", "letters")
    op.execute(
        "CREATE TABLE IF NOT EXISTS letters_of (memory_id uuid PRIMARY KEY, letters integer)"
    )
    in_batches(
        "INSERT INTO letters_of SELECT m.id, m.letters FROM memories m WHERE {within}"
        " ON CONFLICT DO NOTHING",
        "memories",
        alias="m",
    )
