"""Statements of the hot paths, straight through the driver on a connection of the engine's pool.

SQLAlchemy takes 150 µs of CPU to execute a statement that the driver alone sends in 30, and up to a
millisecond to put a long one together; an event is a dozen of them, and a search seven. So each is
put together once, and its values are parameters. What is lost is what text statements never had:
SQLAlchemy's own types.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import asyncpg
from sqlalchemy import ClauseElement, Dialect
from sqlalchemy.dialects.postgresql import asyncpg as asyncpg_dialect
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.sql.compiler import SQLCompiler

from pipeline.ledger.engine import is_stale, suspect_all
from pipeline.ledger.failures import Unreachable

# What a server says that goes down or starts up, before it closes the connection.
GOING = (asyncpg.AdminShutdownError, asyncpg.CrashShutdownError, asyncpg.CannotConnectNowError)
DIALECT: Dialect = asyncpg_dialect.dialect()  # type: ignore[no-untyped-call]


class Record(asyncpg.Record):
    """A row, its columns by name: `row.fence`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Direct:
    """Each statement is a transaction of its own, and its values are by name as for SQLAlchemy.

    Errors are SQLAlchemy's too: IntegrityError, DataError, else DBAPIError; OSError where nobody
    listens, TimeoutError where nobody answers.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def rows(
        self, query: ClauseElement, values: Mapping[str, Any], *, keep: bool = True
    ) -> Sequence[Any]:
        """`keep`: cache the compiled statement; not for one that is built for a single use."""
        words, names, constants = (_numbered if keep else _numbered.__wrapped__)(query)
        given = [values[name] if name in values else constants[name] for name in names]
        pooled = await self._pooled()
        driver = cast("asyncpg.Connection[Record]", pooled.driver_connection)
        try:
            return await driver.fetch(words, *given, record_class=Record)
        except asyncio.CancelledError:  # in the middle: nobody knows what comes back next
            pooled.invalidate()
            raise
        except TimeoutError:  # the server did not even say that the time is up
            suspect_all(self._engine.dialect)
            pooled.invalidate()
            raise
        except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as said:
            error = _as_sqlalchemys(said, gone=driver.is_closed() or isinstance(said, GOING))
            if is_stale(said):
                suspect_all(self._engine.dialect)
                error.connection_invalidated = True
            if error.connection_invalidated:  # or it would be given to the next who asks
                pooled.invalidate()
            raise error from said
        finally:
            pooled.close()

    async def row(self, query: ClauseElement, values: Mapping[str, Any]) -> Any | None:
        """The only row, if there is one."""
        rows = await self.rows(query, values)
        return rows[0] if rows else None

    async def _pooled(self) -> PoolProxiedConnection:
        try:
            return await self._engine.raw_connection()
        except self._engine.dialect.loaded_dbapi.Error as error:  # it starts up, or goes down
            raise Unreachable(None, None, error, connection_invalidated=True) from error


@lru_cache(maxsize=1_000)
def _numbered(query: ClauseElement) -> tuple[str, Sequence[str], Mapping[str, Any]]:
    """The statement with `$1` for its first value, the values' names in order, and those that it
    brings along itself.
    """
    compiled = query.compile(dialect=DIALECT)
    assert isinstance(compiled, SQLCompiler)
    constants = {key: bind.value for key, bind in compiled.binds.items() if not bind.required}
    return compiled.string, tuple(compiled.positiontup or ()), constants


def _as_sqlalchemys(error: Exception, *, gone: bool) -> DBAPIError:
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return IntegrityError(None, None, error)
    if isinstance(error, asyncpg.DataError):  # a value that cannot be stored, which is the caller's
        return DataError(None, None, error)
    return DBAPIError(None, None, error, connection_invalidated=gone)
