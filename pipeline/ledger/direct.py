"""Statements of the hot paths, straight through the driver on a connection of the engine's pool.

SQLAlchemy takes 150 µs of CPU to execute a statement that the driver alone sends in 30, and up to a
millisecond to put a long one together; an event is a dozen of them, and a search seven. So each is
put together once, and its values are parameters. What is lost is what text statements never had:
SQLAlchemy's own types.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from typing import Any, cast

import asyncpg
from sqlalchemy import ClauseElement, Dialect
from sqlalchemy.dialects.postgresql import asyncpg as asyncpg_dialect
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.sql.compiler import SQLCompiler

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
    listens.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def rows(self, query: ClauseElement, values: Mapping[str, Any]) -> Sequence[Any]:
        words, names, constants = _numbered(query)
        given = {**constants, **values}
        async with self._connected() as connection:
            return await connection.fetch(
                words, *(given[name] for name in names), record_class=Record
            )

    async def row(self, query: ClauseElement, values: Mapping[str, Any]) -> Any | None:
        """The only row, if there is one."""
        rows = await self.rows(query, values)
        return rows[0] if rows else None

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[asyncpg.Connection[Record]]:
        pooled = await self._pooled()
        while (driver := cast("asyncpg.Connection[Record]", pooled.driver_connection)).is_closed():
            # The server went away meanwhile; SQLAlchemy would only learn of it from an error.
            pooled.invalidate()
            pooled.close()
            pooled = await self._pooled()
        try:
            with _errors_as_sqlalchemys(driver):
                yield driver
        except asyncio.CancelledError:  # in the middle: nobody knows what comes back next
            pooled.invalidate()
            raise
        except DBAPIError as error:
            if error.connection_invalidated:  # or it would be given to the next who asks
                pooled.invalidate()
            raise
        finally:
            pooled.close()

    async def _pooled(self) -> PoolProxiedConnection:
        try:
            return await self._engine.raw_connection()
        except self._engine.dialect.loaded_dbapi.Error as error:  # it starts up, or goes down
            raise DBAPIError(None, None, error, connection_invalidated=True) from error


@lru_cache(maxsize=1_000)
def _numbered(query: ClauseElement) -> tuple[str, Sequence[str], Mapping[str, Any]]:
    """The statement with `$1` for its first value, the values' names in order, and those that it
    brings along itself.
    """
    compiled = query.compile(dialect=DIALECT)
    assert isinstance(compiled, SQLCompiler)
    constants = {key: bind.value for key, bind in compiled.binds.items() if not bind.required}
    return compiled.string, tuple(compiled.positiontup or ()), constants


@contextmanager
def _errors_as_sqlalchemys(driver: asyncpg.Connection[Record]) -> Iterator[None]:
    try:
        yield
    except asyncpg.IntegrityConstraintViolationError as error:
        raise IntegrityError(None, None, error) from error
    except asyncpg.DataError as error:  # a value that cannot be stored, which is the caller's
        raise DataError(None, None, error) from error
    except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        gone = driver.is_closed() or isinstance(error, GOING)
        raise DBAPIError(None, None, error, connection_invalidated=gone) from error
