"""numbers of owners: triggers of the books count the owners with memories

So no figure needs a pass over the owners. An earlier release folds the books with the same triggers.
"""

from __future__ import annotations

from alembic import op

revision = "0069"
down_revision = "0068"
branch_labels = None
depends_on = None

ADDED = "SELECT project_id, kind, owner, amount, 1 AS sign FROM after"
REMOVED = "SELECT project_id, kind, owner, amount, -1 AS sign FROM before"
CHANGES = {
    "inserted": ("INSERT", "NEW TABLE AS after", ADDED),
    "updated": (
        "UPDATE",
        "OLD TABLE AS before NEW TABLE AS after",
        f"{ADDED} UNION ALL {REMOVED}",
    ),
    "deleted": ("DELETE", "OLD TABLE AS before", REMOVED),
}
# Reads the changed rows in one pass, without a join of both tables.
COUNT = """INSERT INTO book_entries (project_id, kind, amount)
    SELECT project_id, kind || 's', sum(sign) FROM ({rows}) changed
    WHERE owner <> '' AND amount > 0
    GROUP BY project_id, kind HAVING sum(sign) <> 0"""
REGISTERED = """UPDATE books SET since = o.created_at FROM owners o
    WHERE o.project_id = books.project_id AND o.kind = books.kind AND o.id = books.owner
      AND o.created_at < books.since"""
KINDS = "('users', 'agents', 'apps', 'runs')"


def upgrade() -> None:
    for name, (operation, tables, rows) in CHANGES.items():
        op.execute(
            f"CREATE FUNCTION count_owners_{name}() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN {COUNT.format(rows=rows)}; RETURN NULL; END $$"
        )
        op.execute(
            f"CREATE TRIGGER owners_{name} AFTER {operation} ON books REFERENCING {tables}"
            f" FOR EACH STATEMENT EXECUTE FUNCTION count_owners_{name}()"
        )
    op.execute(COUNT.format(rows="SELECT *, 1 AS sign FROM books"))
    op.execute(REGISTERED)


def downgrade() -> None:
    for name in CHANGES:
        op.execute(f"DROP TRIGGER owners_{name} ON books")
        op.execute(f"DROP FUNCTION count_owners_{name}()")
    for table in ("books", "book_entries"):
        op.execute(f"DELETE FROM {table} WHERE kind IN {KINDS} AND owner = ''")
