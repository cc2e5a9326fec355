"""Rows of one statement, in a transaction of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Executable, Row
from sqlalchemy.ext.asyncio import AsyncEngine


async def fetch(
    engine: AsyncEngine, query: Executable, values: Mapping[str, Any] | None = None
) -> Sequence[Row[Any]]:
    """Execute a statement and return its rows. `engine`: one in autocommit."""
    async with engine.connect() as connection:
        rows: Sequence[Row[Any]] = (await connection.execute(query, values)).all()
        return rows
