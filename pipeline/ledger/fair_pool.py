"""A pool of connections for which projects take turns.

A request takes a connection several times. With one queue, each time it would wait behind all that
another tenant has sent at once: a search beside 280 such requests took 2.5 s. And if a project may
use all connections, PostgreSQL runs its statements beside those of others: with 16 connections in
each of two processes a statement got a sixteenth of a core, and that search took 1.5 s. So while
several projects are active, each has a quarter of the connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

from sqlalchemy.dialects.postgresql.asyncpg import AsyncAdapt_asyncpg_dbapi
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry, PoolProxiedConnection
from sqlalchemy.util import await_

from pipeline.fair_slots import FairSlots
from pipeline.ledger.failures import LedgerUnavailable

# While others are active, a project has one of PARTS parts of the connections, but FEWEST at least.
PARTS, FEWEST = 4, 2
DRIVER_ERROR = AsyncAdapt_asyncpg_dbapi.Error

_group: ContextVar[Hashable] = ContextVar("_group", default=None)
_urgent: ContextVar[bool] = ContextVar("_urgent", default=False)


def take_turns_as(group: Hashable) -> None:
    """Count the rest of this task, and the tasks it starts, to a group; groups take turns."""
    _group.set(group)


@contextmanager
def first_in_line() -> Iterator[None]:
    """Give the statements of this block the next free connection of their pool."""
    token = _urgent.set(True)
    try:
        yield
    finally:
        _urgent.reset(token)


class FairPool(AsyncAdaptedQueuePool):
    """A pool without overflow whose connections go to the waiting groups in turn.

    Errors: LedgerUnavailable if it has no connection in time: nothing was sent.
    """

    def __init__(self, creator: Callable[..., Any], *, pool_size: int, **options: Any) -> None:
        super().__init__(creator, pool_size=pool_size, **options)
        share = max(FEWEST, pool_size // PARTS)
        self._slots: FairSlots[Hashable] = FairSlots(pool_size, share=share)
        # The group of each connection that is in use.
        self._groups: dict[ConnectionPoolEntry, Hashable] = {}

    def connect(self) -> PoolProxiedConnection:
        try:
            return super().connect()
        except (OSError, SQLAlchemyError, DRIVER_ERROR) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            raise LedgerUnavailable(cause or error, sent=False) from cause

    def _do_get(self) -> ConnectionPoolEntry:
        """Wait for a slot: there are as many as connections, so the queue never waits."""
        group = _group.get()
        if not self._slots.take(group):
            await_(self._wait(group))
        with ExitStack() as unless_taken:
            unless_taken.callback(self._slots.release, group)
            record = super()._do_get()
            unless_taken.pop_all()
        self._groups[record] = group
        return record

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        super()._do_return_conn(record)
        self._slots.release(self._groups.pop(record))

    async def _wait(self, group: Hashable) -> None:
        limit_s = self.timeout()
        try:
            async with asyncio.timeout(limit_s):
                await self._slots.acquire(group, urgent=_urgent.get())
        except TimeoutError:
            raise TimeoutError(f"no connection was free for {limit_s:.0f} s") from None
