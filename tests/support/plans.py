"""Rows that statements read: a measure of cost that does not depend on the machine's load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event, text
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


async def rows_read_so_far(engine: AsyncEngine) -> int:
    """Rows that all statements in this database have read until now, as the server counts them.

    Unlike `rows_read`, this shows the cost of the cached plan that a connection really uses. The
    engine has one connection: only that one is sure to have reported its reads.
    """
    async with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        await connection.execute(text("SELECT pg_stat_force_next_flush()"))
        rows = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables"
        return int(await connection.scalar(text(rows)) or 0)


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
