"""Rows that statements read: a measure of cost that does not depend on the machine's load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

Statement = tuple[str, Any]


@contextmanager
def recorded(engine: AsyncEngine) -> Iterator[list[Statement]]:
    """The statements that SQLAlchemy executes inside the block, with their values."""
    statements: list[Statement] = []

    def record(_c: Any, _cursor: Any, words: str, values: Any, *_: Any) -> None:
        statements.append((words, values))

    event.listen(engine.sync_engine, "before_cursor_execute", record)
    try:
        yield statements
    finally:
        event.remove(engine.sync_engine, "before_cursor_execute", record)


async def rows_read(engine: AsyncEngine, statements: list[Statement]) -> int:
    """Highest number of rows that one plan node of these statements reads."""
    most = 0
    async with engine.connect() as connection:
        for words, values in statements:
            explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {words}"
            [[plan]] = (await connection.exec_driver_sql(explain, values)).all()
            [root] = json.loads(plan) if isinstance(plan, str) else plan
            most = max(most, *_rows(root["Plan"]))
        await connection.rollback()
    return most


def _rows(node: dict[str, Any]) -> Iterator[int]:
    """Rows of each plan node: those it returns and those it reads and discards."""
    thrown = sum(node.get(f"Rows Removed by {why}", 0) for why in ("Filter", "Index Recheck"))
    yield int((node["Actual Rows"] + thrown) * node["Actual Loops"])
    for part in node.get("Plans", ()):
        yield from _rows(part)
