"""baseline: the schema of release 0.2.0, which replaces all migrations before it

A database of release 0.1 that has the migration 0076 needs nothing. An older one is first migrated
by commit 7d2a913, see docs/howto/upgrade.md.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0076"
down_revision = None

# Functions, then each table with its indexes, then triggers; a blank line follows each statement.
STATEMENTS = Path(__file__).with_suffix(".sql")


def upgrade() -> None:
    for statement in STATEMENTS.read_text("utf-8").split("\n\n"):
        op.execute(sa.text(statement.replace(":", r"\:")))
    # The sweeper builds the terms again, because the tokenizer is newer than version 1.
    op.execute("INSERT INTO term_cuts (name, cut) VALUES ('memories', 1), ('messages', 1)")


def downgrade() -> None:
    raise NotImplementedError("There is nothing before the baseline.")
