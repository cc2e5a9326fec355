"""words: terms beside every text, and the order in which things were said"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

from pipeline.text import terms

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

ROWS = 1_000


def upgrade() -> None:
    for table in ("memories", "messages"):
        op.add_column(
            table, sa.Column("terms", ARRAY(sa.Text()), server_default="{}", nullable=False)
        )
    op.create_index("ix_messages_order", "messages", ["lane_id", "said_at", "seq", "ordinal"])
    _fill("memories", "text", ("id",))
    _fill("messages", "content", ("lane_id", "seq", "ordinal"))


def _fill(name: str, text: str, keys: tuple[str, ...]) -> None:
    """Cut what is stored already; a stream of pages, so that no ledger is too large."""
    columns: list[sa.ColumnClause[object]] = [sa.column(key) for key in keys]
    table = sa.table(name, *columns, sa.column(text), sa.column("terms", ARRAY(sa.Text())))
    page = sa.select(*columns, table.c[text]).order_by(*columns).limit(ROWS)
    change = (
        sa.update(table)
        .where(*(column == sa.bindparam(f"at_{column.name}") for column in columns))
        .values(terms=sa.bindparam("cut"))
    )
    connection, last = op.get_bind(), None
    while True:
        after = page if last is None else page.where(sa.tuple_(*columns) > sa.tuple_(*last))
        rows = connection.execute(after).all()
        if not rows:
            return
        cut_rows = [
            {f"at_{key}": row[at] for at, key in enumerate(keys)}
            | {"cut": terms.terms(str(row[len(keys)]))}
            for row in rows
        ]
        connection.execute(change, cut_rows)
        last = [sa.literal(row[at]) for row in rows[-1:] for at in range(len(keys))]


def downgrade() -> None:
    op.drop_index("ix_messages_order", "messages")
    for table in ("memories", "messages"):
        op.drop_column(table, "terms")
