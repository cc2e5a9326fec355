"""Rows that statements read: a measure of cost that does not depend on the machine's load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.ledger.statements import Direct, bound

Statement = tuple[str, Any]
# Statements that PostgreSQL does not plan.
NOT_PLANNED = ("SAVEPOINT", "RELEASE", "ROLLBACK", "SET")


@contextmanager
def recorded(engine: AsyncEngine) -> Iterator[list[Statement]]:
    """The statements that are executed inside the block, with their values."""
    statements: list[Statement] = []
    send = Direct.rows

    def record(_c: Any, _cursor: Any, words: str, values: Any, *_: Any) -> None:
        statements.append((words, values))

    async def rows(self: Direct, query: Any, values: Any) -> Any:
        if self._engine.sync_engine is engine.sync_engine:
            statements.append(bound(query, values))
        return await send(self, query, values)

    event.listen(engine.sync_engine, "before_cursor_execute", record)
    Direct.rows = rows  # type: ignore[method-assign]
    try:
        yield statements
    finally:
        Direct.rows = send  # type: ignore[method-assign]
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
    """Highest number of rows that one plan node of these statements reads.

    With their generic plans, as the product runs them: an EXPLAIN of a statement with its values
    would show a plan that is made for these values.
    """
    most = 0
    async with engine.connect() as connection:
        driver = (await connection.get_raw_connection()).driver_connection
        assert driver is not None
        planned = (row for row in statements if not row[0].startswith(NOT_PLANNED))
        for words, values in planned:
            given = ", ".join(map(_literal, values))
            await driver.execute("SET plan_cache_mode = force_generic_plan")
            await driver.execute(f"PREPARE explained AS {words}")
            execute = "EXECUTE explained" + (f" ({given})" if given else "")
            await driver.execute("BEGIN")
            try:
                plan = await driver.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {execute}")
            finally:
                await driver.execute("ROLLBACK")
                await driver.execute("DEALLOCATE explained")
            [root] = json.loads(plan) if isinstance(plan, str) else plan
            most = max(most, *_rows(root["Plan"]))
    return most


def _literal(value: Any) -> str:
    """A value as SQL, without a type: PREPARE knows the types of its parameters."""
    match value:
        case None:
            return "NULL"
        case list() | tuple():
            return _quoted("{" + ",".join(map(_element, value)) + "}")
        case bytes():
            return _quoted(f"\\x{value.hex()}")
        case timedelta():
            return _quoted(f"{value.total_seconds()} seconds")
        case _:
            return _quoted(str(value))


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _quoted(words: str) -> str:
    return "'" + words.replace("'", "''") + "'"


def _rows(node: dict[str, Any]) -> Iterator[int]:
    """Rows of each plan node: those it returns and those it reads and discards."""
    thrown = sum(node.get(f"Rows Removed by {why}", 0) for why in ("Filter", "Index Recheck"))
    yield int((node["Actual Rows"] + thrown) * node["Actual Loops"])
    for part in node.get("Plans", ()):
        yield from _rows(part)
