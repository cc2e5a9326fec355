"""Row locks, and the order in which every transaction takes them.

Lock order, from the first to the last:

    organization → project → idempotency keys by key → lanes by id → memories by id → turns by id
    → suggestions by id

A transaction locks rows of several kinds in this order, and rows of one kind by ascending id. Two
transactions can then wait for each other but never deadlock. The SQL files that lock rows (accept,
finish_apply, undo_memories, …) keep the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

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
