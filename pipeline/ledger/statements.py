"""Statements of the hot paths, sent through the driver on a connection of the engine's pool.

SQLAlchemy needs 150 µs of CPU to execute a statement that the driver alone sends in 30 µs, and up
to a millisecond to compile a long one. An event takes a dozen statements, a search six. So each
statement is compiled once and cached, with its values as parameters. As with textual SQL,
SQLAlchemy's type conversions do not apply.

Statements of a filter depend on its shape, and callers choose shapes: these are kept up to a number
of bytes, as SQL text only, and large ones are compiled in a thread, one at a time.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar, cast

import asyncpg
from sqlalchemy import ClauseElement, Dialect
from sqlalchemy.dialects.postgresql import asyncpg as asyncpg_dialect
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.sql.compiler import SQLCompiler

from pipeline.ledger.byte_cache import ByteCache
from pipeline.ledger.engine import is_stale, noted, suspect_all
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


# Statements of about 100 usual shapes; those with 19 conditions take 25 to 75 kB each.
SHAPES_BYTES = 8_000_000
# Number of conditions up to which a statement is compiled on the event loop: about 10 ms.
QUICK = 4
ShapeT = TypeVar("ShapeT", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A statement as SQL with `$1`, `$2`, …

    `names`: its values in order. `constants`: its own values by name.
    """

    words: str
    names: tuple[str, ...]
    constants: Mapping[str, Any]

    @classmethod
    def of(cls, query: ClauseElement) -> Compiled:
        """Compile a statement."""
        compiled = query.compile(dialect=DIALECT)
        assert isinstance(compiled, SQLCompiler)
        constants = {key: bind.value for key, bind in compiled.binds.items() if not bind.required}
        return cls(compiled.string, tuple(compiled.positiontup or ()), constants)

    @property
    def size_bytes(self) -> int:
        """Bytes of memory with the shape that leads to it, as an estimate."""
        parts = (self.words, self.names, self.constants, *self.names)
        return 2 * sum(map(sys.getsizeof, parts))


class CompiledShapes:
    """Compiled statements by their shape, in memory of bounded size."""

    def __init__(self, most_bytes: int = SHAPES_BYTES) -> None:
        self.kept = ByteCache(most_bytes, lambda compiled: compiled.size_bytes)
        self._one_at_a_time = asyncio.Lock()

    async def of(
        self, build: Callable[[ShapeT], ClauseElement], shape: ShapeT, *, conditions: int = 0
    ) -> Compiled:
        """The compiled statement that `build` makes for this shape.

        `conditions`: their number, if callers choose it.
        """
        compiled: Compiled | None = self.kept.get((build, shape))
        if compiled is not None:
            return compiled
        if conditions <= QUICK:
            compiled = Compiled.of(build(shape))
        else:
            async with self._one_at_a_time:
                compiled = await asyncio.to_thread(lambda: Compiled.of(build(shape)))
        self.kept[build, shape] = compiled
        return compiled


# Shared by all stores of a process.
SHAPES = CompiledShapes()


class Direct:
    """Execute statements with named values, each in a transaction of its own.

    Errors: see pipeline.ledger.failures; also SQLAlchemy's IntegrityError.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def rows(
        self, query: ClauseElement | Compiled, values: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Execute a statement and return its rows.

        A `query` that is not compiled is one of a fixed number: it is compiled once and kept.
        """
        words, given = bound(query, values)
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
            raise noted(self._engine.dialect, translated(error)) from cause
        finally:
            pooled.close()

    async def row(self, query: ClauseElement, values: Mapping[str, Any]) -> Any | None:
        """Execute a statement and return its first row, or None."""
        rows = await self.rows(query, values)
        return rows[0] if rows else None


def bound(query: ClauseElement | Compiled, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The SQL of a statement, and its values in order."""
    compiled = query if isinstance(query, Compiled) else _compiled(query)
    constants = compiled.constants
    given = [values[name] if name in values else constants[name] for name in compiled.names]
    return compiled.words, given


_compiled = lru_cache(maxsize=1_000)(Compiled.of)


def _as_sqlalchemys(error: Exception, *, gone: bool) -> DBAPIError:
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return IntegrityError(None, None, error)
    if isinstance(error, asyncpg.DataError):  # the caller's value cannot be stored
        return DataError(None, None, error)
    return DBAPIError(None, None, error, connection_invalidated=gone)
