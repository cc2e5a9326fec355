"""Counts of long lists, without reading all of their rows."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, Select, bindparam, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

# Number of rows counted after the page; takes a few milliseconds.
COUNTED = 10_000


async def count_near(
    engine: AsyncEngine, rows: Select[Any], *, limit: int, offset: int, beyond: int = COUNTED
) -> int:
    """Count the rows: exact up to `beyond` rows after the page, else a lower bound."""
    values = {"counted": offset + limit + beyond}
    async with engine.connect() as connection:
        return await connection.scalar(number_of(rows.order_by(None)), values) or 0


def number_of(rows: Select[Any]) -> Select[int]:
    """Select the number of these rows, exact up to the parameter `counted`."""
    counted = rows.limit(bindparam("counted", type_=Integer)).subquery("some")
    return select(func.count()).select_from(counted)


def at_least(count: int, rows: int, *, limit: int, offset: int) -> int:
    """The count of a list, of which a page of `limit` has this many rows.

    A count that looks at a part of the scopes can be lower than the rows of the page show. Then
    there is at least one more row behind a full page. An empty page shows none.
    """
    if not rows or count >= offset + rows:
        return count
    return offset + rows + (rows == limit)
