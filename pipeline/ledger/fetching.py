"""One statement in a transaction of its own, and rows that must exist.

A statement that writes and returns rows needs an engine in autocommit: reads are not committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Executable, Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain.errors import NotFound


async def fetch(
    engine: AsyncEngine, query: Executable, values: Mapping[str, Any] | None = None
) -> Sequence[Row[Any]]:
    """Execute a statement and return its rows."""
    async with engine.connect() as connection:
        return (await connection.execute(query, values)).all()


async def fetch_row(
    engine: AsyncEngine, query: Executable, values: Mapping[str, Any] | None = None
) -> Row[Any] | None:
    """Execute a statement and return its only row, or None."""
    async with engine.connect() as connection:
        return (await connection.execute(query, values)).one_or_none()


async def fetch_known(engine: AsyncEngine, query: Executable, *, missing: str) -> Row[Any]:
    """Execute a statement and return its only row. Errors: NotFound with the text `missing`."""
    async with engine.connect() as connection:
        return await known_row(connection, query, missing=missing)


async def known_row(connection: AsyncConnection, query: Executable, *, missing: str) -> Row[Any]:
    """Like `fetch_known`, in the transaction of the caller."""
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise NotFound(missing)
    return row


async def fetch_value(
    engine: AsyncEngine, query: Executable, values: Mapping[str, Any] | None = None
) -> Any:
    """Execute a statement and return the first value of its first row, or None."""
    async with engine.connect() as connection:
        return await connection.scalar(query, values)


async def execute(
    engine: AsyncEngine, query: Executable, values: Mapping[str, Any] | None = None
) -> int:
    """Execute a statement and commit. Returns the number of rows that it changed."""
    async with engine.begin() as connection:
        return (await connection.execute(query, values)).rowcount
