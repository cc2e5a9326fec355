"""owner dates: the books keep when an owner's memories were last changed, as they keep since when

Existing owners get their date here, by one pass over the active memories.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
OWNERS = "('user', {row}.user_id), ('agent', {row}.agent_id), ('app', {row}.app_id), ('run', {row}.run_id)"


def _entry(row: str, amount: int, *, dated: bool) -> str:
    date, value = (", last_at", f", {row}.updated_at") if dated else ("", "")
    return f"""INSERT INTO book_entries (project_id, kind, owner, amount, since{date})
    SELECT {row}.project_id, kind, owner, {amount}, {row}.created_at{value}
    FROM (VALUES ('MEMORY', ''), {OWNERS.format(row=row)}) AS line (kind, owner)
    WHERE owner IS NOT NULL;"""


def _book_memory(*, dated: bool) -> str:
    return f"""CREATE OR REPLACE FUNCTION book_memory() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP <> 'INSERT' AND OLD.state = 'ACTIVE' THEN
        {_entry("OLD", -1, dated=dated)}
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.state = 'ACTIVE' THEN
        {_entry("NEW", 1, dated=dated)}
    END IF;
    RETURN NULL; END $$"""


# An edit changes no count: its entries only carry the date.
BOOK_EDIT = f"""CREATE FUNCTION book_edit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO book_entries (project_id, kind, owner, amount, last_at)
    SELECT NEW.project_id, kind, owner, 0, NEW.updated_at
    FROM (VALUES {OWNERS.format(row="NEW")}) AS line (kind, owner) WHERE owner IS NOT NULL;
    RETURN NULL; END $$"""
BOOK_EDITED = """CREATE TRIGGER book_edited AFTER UPDATE ON memories FOR EACH ROW
    WHEN (OLD.state = 'ACTIVE' AND NEW.state = 'ACTIVE' AND OLD.updated_at <> NEW.updated_at)
    EXECUTE FUNCTION book_edit()"""
DATE = f"""UPDATE books SET last_at = dated.last_at FROM (
        SELECT project_id, kind, owner, max(updated_at) AS last_at
        FROM memories m CROSS JOIN LATERAL (VALUES {OWNERS.format(row="m")}) AS line (kind, owner)
        WHERE state = 'ACTIVE' AND owner IS NOT NULL GROUP BY project_id, kind, owner
    ) dated
    WHERE (books.project_id, books.kind, books.owner)
        = (dated.project_id, dated.kind, dated.owner)"""
# Owners whose counts are still entries: the sum is not changed.
ENTER = f"""INSERT INTO book_entries (project_id, kind, owner, amount, last_at)
    SELECT project_id, kind, owner, 0, max(updated_at)
    FROM memories m CROSS JOIN LATERAL (VALUES {OWNERS.format(row="m")}) AS line (kind, owner)
    WHERE state = 'ACTIVE' AND owner IS NOT NULL AND NOT EXISTS (
        SELECT FROM books b
        WHERE (b.project_id, b.kind, b.owner) = (m.project_id, line.kind, line.owner)
    ) GROUP BY project_id, kind, owner"""


def upgrade() -> None:
    # The trigger locks out writers until the commit: what it does not see is dated here. Tables are
    # locked in the order in which writers lock them.
    op.execute(BOOK_EDIT)
    op.execute(BOOK_EDITED)
    op.add_column("book_entries", sa.Column("last_at", TIME))
    op.add_column("books", sa.Column("last_at", TIME))
    op.execute(_book_memory(dated=True))
    op.execute(DATE)
    op.execute(ENTER)


def downgrade() -> None:
    op.execute("DROP FUNCTION book_edit CASCADE")
    op.execute(_book_memory(dated=False))
    op.drop_column("book_entries", "last_at")
    op.drop_column("books", "last_at")
