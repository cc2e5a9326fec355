"""Statements of the hot paths, sent through the driver on a connection of the engine's pool.

SQLAlchemy needs 150 µs of CPU to execute a statement that the driver alone sends in 30 µs, and up
to a millisecond to compile a long one. An event takes a dozen statements, a search six. So each
statement is compiled once and cached, with its values as parameters. As with textual SQL,
SQLAlchemy's type conversions do not apply.
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
from sqlalchemy.sql.compiler import SQLCompiler

from pipeline.ledger.engine import is_stale, suspect_all
from pipeline.ledger.failures import LedgerUnavailable, translated

# Errors of a server that shuts down or starts up, sent before it closes the connection.
GOING = (asyncpg.AdminShutdownError, asyncpg.CrashShutdownError, asyncpg.CannotConnectNowError)
DIALECT: Dialect = asyncpg_dialect.dialect()  # type: ignore[no-untyped-call]


class Record(asyncpg.Record):
    """A row with its columns as attributes: `row.fence`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Direct:
    """Execute statements with named values, each in a transaction of its own.

    Errors: see pipeline.ledger.failures; also SQLAlchemy's IntegrityError.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def rows(
        self, query: ClauseElement, values: Mapping[str, Any], *, keep: bool = True
    ) -> Sequence[Any]:
        """Execute a statement and return its rows.

        `keep`: cache the compiled statement; False for a statement that is used only once.
        """
        words, names, constants = (_numbered if keep else _numbered.__wrapped__)(query)
        given = [values[name] if name in values else constants[name] for name in names]
        pooled = await self._engine.raw_connection()
        driver = cast("asyncpg.Connection[Record]", pooled.driver_connection)
        try:
            return await driver.fetch(words, *given, record_class=Record)
        except asyncio.CancelledError:  # cancelled in the middle: the next answer is unknown
            pooled.invalidate()
            raise
        except OSError as silence:  # not even the server's own timeout error arrived
            suspect_all(self._engine.dialect)
            pooled.invalidate()
            raise LedgerUnavailable(silence) from silence
        except (
            asyncpg.PostgresError,
            asyncpg.InterfaceError,
            asyncpg.InternalClientError,
        ) as cause:
            error = _as_sqlalchemys(cause, gone=driver.is_closed() or isinstance(cause, GOING))
            if is_stale(cause):
                suspect_all(self._engine.dialect)
                error.connection_invalidated = True
            if error.connection_invalidated:  # else the pool would hand it out again
                pooled.invalidate()
            raise translated(error) from cause
        finally:
            pooled.close()

    async def row(self, query: ClauseElement, values: Mapping[str, Any]) -> Any | None:
        """Execute a statement and return its first row, or None."""
        rows = await self.rows(query, values)
        return rows[0] if rows else None


@lru_cache(maxsize=1_000)
def _numbered(query: ClauseElement) -> tuple[str, Sequence[str], Mapping[str, Any]]:
    """Compile a statement to SQL with `$1`, `$2`, …

    Returns the SQL, the names of its values in order, and its own constants by name.
    """
    compiled = query.compile(dialect=DIALECT)
    assert isinstance(compiled, SQLCompiler)
    constants = {key: bind.value for key, bind in compiled.binds.items() if not bind.required}
    return compiled.string, tuple(compiled.positiontup or ()), constants


def _as_sqlalchemys(error: Exception, *, gone: bool) -> DBAPIError:
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return IntegrityError(None, None, error)
    if isinstance(error, asyncpg.DataError):  # the caller's value cannot be stored
        return DataError(None, None, error)
    return DBAPIError(None, None, error, connection_invalidated=gone)
