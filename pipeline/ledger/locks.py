"""Row locks, and the order in which every transaction takes them.

Lock order, from the first to the last:

    organization → project → idempotency keys by key → lanes by id → memories by id → turns by id
    → suggestions by id → conflicts by id

A transaction locks rows of several kinds in this order, and rows of one kind by ascending id. Two
transactions can then wait for each other but never deadlock. The SQL files that lock rows (accept,
finish_apply, undo_memories, …) keep the same order. A trigger that a change of a memory fires locks
the suggestions and conflicts that name it, after each statement: see 0088_shown_states.sql. So each
change of memories locks their lanes first: the statements of another one may have another order.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, Table, and_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain.errors import NotFound
from pipeline.ledger.fetching import known_row
from pipeline.ledger.tables import lanes


def locked(table: Table, which: ColumnElement[bool], *columns: ColumnElement[Any]) -> Select[Any]:
    """Select the matching rows of one table, locked by ascending id; their ids by default."""
    selected = columns or (table.c.id,)
    return select(*selected).where(which).order_by(table.c.id).with_for_update()


async def lock_lanes(
    connection: AsyncConnection, which: ColumnElement[bool], *columns: ColumnElement[Any]
) -> Sequence[Row[Any]]:
    """Lock the matching lanes. Returns their ids, and further columns.

    A locked lane accepts no event, and no worker commits a stage in it.
    """
    query = locked(lanes, which, lanes.c.id, *columns)
    rows: Sequence[Row[Any]] = (await connection.execute(query)).all()
    return rows


async def lock_lane_of(
    connection: AsyncConnection, table: Table, which: ColumnElement[bool], *, missing: str
) -> Row[Any]:
    """Lock the lane of a row. Returns the row as it was before the lock.

    Errors: NotFound with the text `missing` if there is no such row, or no such lane any more.
    """
    row = await known_row(connection, select(table).where(which), missing=missing)
    mine = and_(lanes.c.project_id == row.project_id, lanes.c.id == row.lane_id)
    if not await lock_lanes(connection, mine):
        raise NotFound(missing)
    return row


@asynccontextmanager
async def advisory_lock(engine: AsyncEngine, key: int, *, wait: bool) -> AsyncIterator[bool]:
    """Hold an advisory lock for the block, which may take long. False if another process has it.

    `wait`: wait for the other process. A transaction-level lock, because behind a connection pooler
    sessions change. It holds no row and no snapshot, so it may be idle.

    Not with `wait` around CREATE INDEX CONCURRENTLY, which waits for the snapshot of each process
    that waits for the lock.
    """
    lock = "pg_advisory_xact_lock(:key) IS NOT NULL" if wait else "pg_try_advisory_xact_lock(:key)"
    async with engine.begin() as connection:
        granted = bool(await connection.scalar(text(f"SELECT {lock}"), {"key": key}))
        # After the SELECT, because it also ends the snapshot of that.
        await connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        yield granted
