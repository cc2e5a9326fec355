"""books: counters that triggers keep, so that no figure costs a pass over the events

Existing rows are counted once, here. On a large ledger build the two indexes beforehand with CREATE
INDEX CONCURRENTLY and the names below: those that exist are not built again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

OPEN, ENDED = "completed_at IS NULL", "completed_at IS NOT NULL"
WAITING_SINCE = "coalesce(replayed_at, created_at)"

# What one event counts as: under its status, under its type, and as often as it was replayed.
OF_EVENT = "(VALUES (status, 1), (event_type, 1), ('REPLAY', replays)) AS line (kind, amount)"
COLUMNS = "project_id, status, event_type, replays"
# What one ACTIVE memory counts as: in all, and for each of its owners.
OF_MEMORY = """(VALUES ('MEMORY', ''), ('user', {row}.user_id), ('agent', {row}.agent_id),
        ('app', {row}.app_id), ('run', {row}.run_id)) AS line (kind, owner)"""


def _events(source: str) -> str:
    return f"""INSERT INTO book_entries (project_id, kind, amount)
    SELECT project_id, kind, sum(amount * sign) FROM ({source}) e CROSS JOIN LATERAL {OF_EVENT}
    GROUP BY project_id, kind HAVING sum(amount * sign) <> 0;"""


def _memory(row: str, sign: int) -> str:
    return f"""INSERT INTO book_entries (project_id, kind, owner, amount, since)
    SELECT {row}.project_id, kind, owner, {sign}, {row}.created_at
    FROM {OF_MEMORY.format(row=row)} WHERE owner IS NOT NULL;"""


FUNCTIONS = {
    "book_events_inserted": _events(f"SELECT 1 AS sign, {COLUMNS} FROM after"),
    "book_events_updated": _events(
        f"SELECT -1 AS sign, {COLUMNS} FROM before UNION ALL SELECT 1, {COLUMNS} FROM after"
    ),
    "book_events_deleted": _events(f"SELECT -1 AS sign, {COLUMNS} FROM before"),
    "book_numbers": """IF TG_OP <> 'INSERT' THEN
        INSERT INTO book_entries (project_id, kind, amount)
        VALUES (OLD.project_id, 'NUMBER', -OLD.accepted_seq);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO book_entries (project_id, kind, amount)
        VALUES (NEW.project_id, 'NUMBER', NEW.accepted_seq);
    END IF;""",
    "book_memory": f"""IF TG_OP <> 'INSERT' AND OLD.state = 'ACTIVE' THEN
        {_memory("OLD", -1)}
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.state = 'ACTIVE' THEN
        {_memory("NEW", 1)}
    END IF;""",
}
TRIGGERS = (
    "book_inserted AFTER INSERT ON events REFERENCING NEW TABLE AS after"
    " FOR EACH STATEMENT EXECUTE FUNCTION book_events_inserted()",
    "book_updated AFTER UPDATE ON events REFERENCING OLD TABLE AS before NEW TABLE AS after"
    " FOR EACH STATEMENT EXECUTE FUNCTION book_events_updated()",
    "book_deleted AFTER DELETE ON events REFERENCING OLD TABLE AS before"
    " FOR EACH STATEMENT EXECUTE FUNCTION book_events_deleted()",
    # Lanes and memories are updated many times for other reasons: those cost a comparison.
    "book_created AFTER INSERT OR DELETE ON lanes FOR EACH ROW EXECUTE FUNCTION book_numbers()",
    "book_numbered AFTER UPDATE ON lanes FOR EACH ROW"
    " WHEN (OLD.accepted_seq <> NEW.accepted_seq OR OLD.project_id <> NEW.project_id)"
    " EXECUTE FUNCTION book_numbers()",
    "book_created AFTER INSERT OR DELETE ON memories FOR EACH ROW EXECUTE FUNCTION book_memory()",
    "book_changed AFTER UPDATE ON memories FOR EACH ROW"
    " WHEN ((OLD.state, OLD.project_id, OLD.user_id, OLD.agent_id, OLD.app_id, OLD.run_id)"
    " IS DISTINCT FROM"
    " (NEW.state, NEW.project_id, NEW.user_id, NEW.agent_id, NEW.app_id, NEW.run_id))"
    " EXECUTE FUNCTION book_memory()",
)
COUNT = (
    f"""INSERT INTO books (project_id, kind, amount)
    SELECT project_id, kind, sum(amount) FROM events CROSS JOIN LATERAL {OF_EVENT}
    GROUP BY project_id, kind HAVING sum(amount) <> 0""",
    """INSERT INTO books (project_id, kind, amount)
    SELECT project_id, 'NUMBER', sum(accepted_seq) FROM lanes
    GROUP BY project_id HAVING sum(accepted_seq) <> 0""",
    f"""INSERT INTO books (project_id, kind, owner, amount, since)
    SELECT project_id, kind, owner, count(*), min(created_at)
    FROM memories m CROSS JOIN LATERAL {OF_MEMORY.format(row="m")}
    WHERE state = 'ACTIVE' AND owner IS NOT NULL GROUP BY project_id, kind, owner""",
)


def upgrade() -> None:
    _tables()
    _indexes()
    # The triggers lock out writers until the commit: what they do not see is counted here.
    for name, body in FUNCTIONS.items():
        op.execute(
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN {body} RETURN NULL; END $$"
        )
    for trigger in TRIGGERS:
        op.execute(f"CREATE TRIGGER {trigger}")
    for statement in COUNT:
        op.execute(statement)


def downgrade() -> None:
    for name in FUNCTIONS:
        op.execute(f"DROP FUNCTION {name} CASCADE")
    op.drop_index("ix_events_open", "events")
    op.drop_index("ix_events_ended", "events")
    op.create_index("ix_events_completed", "events", ["completed_at"])
    op.drop_table("book_entries")
    op.drop_table("books")


def _tables() -> None:
    op.create_table(
        "books",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False, server_default=""),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("project_id", "kind", "owner", name=op.f("pk_books")),
    )
    op.create_index(
        "ix_books_totals", "books", ["kind"], postgresql_where=sa.text("owner = ''::text")
    )
    op.create_index("ix_books_zero", "books", ["amount"], postgresql_where=sa.text("amount = 0"))
    op.create_table(
        "book_entries",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False, server_default=""),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("pk_book_entries")),
    )


def _indexes() -> None:
    op.create_index(
        "ix_events_open",
        "events",
        ["project_id", sa.text(WAITING_SINCE)],
        postgresql_where=sa.text(OPEN),
        if_not_exists=True,
    )
    op.create_index(
        "ix_events_ended",
        "events",
        ["completed_at"],
        postgresql_where=sa.text(ENDED),
        if_not_exists=True,
    )
    op.drop_index("ix_events_completed", "events")
