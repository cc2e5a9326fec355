"""temporary runs apart: the books and the feed of memories leave them out

So a page of a project costs the same beside any number of temporary sessions. The books had counted
the owners of temporary runs, and each read subtracted them.
"""

from __future__ import annotations

from alembic import op

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0073"
down_revision = "0072"
branch_labels = None
depends_on = None

ENTRY = """INSERT INTO book_entries (project_id, kind, owner, amount, since, last_at)
    SELECT {row}.project_id, kind, owner, {amount}, {row}.created_at, {row}.updated_at
    FROM (VALUES ('MEMORY', ''), {owners}) AS line (kind, owner) WHERE owner IS NOT NULL;"""
EDIT = """INSERT INTO book_entries (project_id, kind, owner, amount, last_at)
    SELECT NEW.project_id, kind, owner, 0, NEW.updated_at
    FROM (VALUES {owners}) AS line (kind, owner) WHERE owner IS NOT NULL;"""
# Lines of the books about the memories of live temporary runs.
LIVE = """INSERT INTO book_entries (project_id, kind, owner, amount, since, last_at)
    SELECT project_id, 'run', run_id, {sign}count(*), min(created_at), max(updated_at)
    FROM memories WHERE temporary AND state = 'ACTIVE' AND run_id IS NOT NULL
    GROUP BY project_id, run_id"""


def upgrade() -> None:
    add_index(
        "ix_memories_shown", "memories", ["project_id", "created_at"], where="NOT temporary"
    )
    drop_index("ix_memories_feed", "memories")
    # Writers wait for the commit: each memory is booked by one of the two triggers.
    op.execute("LOCK TABLE memories IN SHARE ROW EXCLUSIVE MODE")
    _book(shown=True)
    op.execute(LIVE.format(sign="-"))


def downgrade() -> None:
    add_index("ix_memories_feed", "memories", ["project_id", "created_at"])
    drop_index("ix_memories_shown", "memories")
    op.execute("LOCK TABLE memories IN SHARE ROW EXCLUSIVE MODE")
    _book(shown=False)
    op.execute(LIVE.format(sign=""))


def _book(*, shown: bool) -> None:
    """Replace the triggers of the books. `shown`: without the runs of temporary memories."""
    removed = ENTRY.format(row="OLD", amount=-1, owners=_owners("OLD", shown=shown))
    added = ENTRY.format(row="NEW", amount=1, owners=_owners("NEW", shown=shown))
    op.execute(
        "CREATE OR REPLACE FUNCTION book_memory() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF TG_OP <> 'INSERT' AND OLD.state = 'ACTIVE' THEN {removed} END IF;"
        f" IF TG_OP <> 'DELETE' AND NEW.state = 'ACTIVE' THEN {added} END IF;"
        " RETURN NULL; END $$"
    )
    edited = EDIT.format(owners=_owners("NEW", shown=shown))
    op.execute(
        "CREATE OR REPLACE FUNCTION book_edit() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN {edited} RETURN NULL; END $$"
    )


def _owners(row: str, *, shown: bool) -> str:
    """The owners of a memory as rows of VALUES."""
    run = f"CASE WHEN NOT {row}.temporary THEN {row}.run_id END" if shown else f"{row}.run_id"
    ids = [f"('{kind}', {row}.{kind}_id)" for kind in ("user", "agent", "app")]
    return ", ".join([*ids, f"('run', {run})"])
