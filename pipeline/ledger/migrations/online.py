"""Migration steps that keep tables open: indexes built beside writers, back-fills in batches.

They commit before and after themselves, so a revision that was stopped in the middle is run again
from its start: its other steps must allow that (`IF NOT EXISTS`), or stand in a revision of their
own. In a transaction of the caller (a test, a downgrade) the steps run inside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from alembic import op

# Rows of one batch of a back-fill: its locks last a fraction of a second.
ROWS = 5_000
# Where a statement has the condition on the rows of a batch.
WITHIN = "{within}"


def add_index(
    name: str,
    table: str,
    columns: Sequence[str | sa.TextClause],
    *,
    where: str | None = None,
    **options: Any,
) -> None:
    """Create an index CONCURRENTLY; an invalid one, left by an interrupted build, is replaced."""
    with _outside_a_transaction() as outside:
        if outside and not _printed() and not op.get_bind().scalar(_VALID, {"name": name}):
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        op.create_index(
            name,
            table,
            list(columns),
            postgresql_where=None if where is None else sa.text(where),
            postgresql_concurrently=outside,
            if_not_exists=True,
            **options,
        )


def drop_index(name: str, table: str) -> None:
    """Drop an index CONCURRENTLY."""
    with _outside_a_transaction() as outside:
        op.drop_index(name, table, postgresql_concurrently=outside, if_exists=True)


def add_trigger(name: str, table: str, events: str, action: str, *, moment: str = "AFTER") -> None:
    """Create or replace a trigger: `name` `moment` `events` ON `table` FOR EACH ROW `action`.

    It commits by itself, so that the table is closed to writes for a moment, and no other one is.
    """
    with _outside_a_transaction():
        op.execute(
            f"CREATE OR REPLACE TRIGGER {name} {moment} {events} ON {table} FOR EACH ROW {action}"
        )


def back_fill(table: str, values: str, *, where: str, key: str = "id") -> None:
    """Run `UPDATE table SET values WHERE where` in batches of ROWS rows by a uuid key.

    `where` must be false for rows that are done.
    """
    update = f"UPDATE {table} SET {values} WHERE ({where}) AND {WITHIN}"  # noqa: S608
    in_batches(update, table, key=key)


def in_batches(statement: str, table: str, *, key: str = "id", alias: str | None = None) -> None:
    """Run a statement in batches of ROWS rows of a table by a uuid key.

    `statement` has the condition WITHIN on the table, under its `alias`; it must do nothing for
    rows that are done.
    """
    if _printed():
        with _outside_a_transaction():
            op.execute(statement.replace(WITHIN, "true"))
        return
    rows = sa.table(table, sa.column(key, sa.Uuid))
    column, name = rows.c[key], f"{alias or table}.{key}"
    with _outside_a_transaction():
        bind, after = op.get_bind(), UUID(int=0)
        batch = sa.select(column).order_by(column).offset(ROWS - 1).limit(1)
        within = sa.text(statement.replace(WITHIN, f"{name} >= :after AND {name} <= :until"))
        while (until := bind.scalar(batch.where(column > after))) is not None:
            bind.execute(within, {"after": after, "until": until})
            after = until
        last = sa.text(statement.replace(WITHIN, f"{name} >= :after"))
        bind.execute(last, {"after": after})


def add_check(name: str, table: str, condition: str) -> None:
    """Add a CHECK constraint. New rows obey it at once; the others are read beside writers.

    In one transaction, the lock of the first step would close the table until all rows are read.
    """
    with _outside_a_transaction():
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}")
        op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({condition}) NOT VALID")
        op.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")


def require(table: str, column: str) -> None:
    """Make a column NOT NULL; its rows are read beside writers."""
    check = f"ck_{table}_{column}_known"
    add_check(check, table, f"{column} IS NOT NULL")
    with _outside_a_transaction():
        # With the constraint, PostgreSQL does not read the rows again.
        op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET NOT NULL")
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {check}")


def _printed() -> bool:
    """Tell if the statements are only rendered, for `memlane migrate --check`."""
    return op.get_context().as_sql


_VALID = sa.text("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")


@contextmanager
def _outside_a_transaction() -> Iterator[bool]:
    """Commit, and let each statement of the block commit by itself.

    Yields False, and changes nothing, in a transaction that the caller of Alembic has begun.
    """
    context = op.get_context()
    if context._in_external_transaction:  # noqa: SLF001  Alembic has no public name for it
        yield False
        return
    with context.autocommit_block():
        yield True
