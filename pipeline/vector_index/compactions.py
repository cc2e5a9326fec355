"""Deleted records of collections, by which a compaction is due, and pauses of their writers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.ledger.locks import advisory_lock
from pipeline.ledger.store import LedgerStore
from pipeline.vector_index.sql import statement

# Key of an advisory lock; no other lock uses it.
COMPACT_LOCK = 0x636F6D70
# Deletions that a process counts before it writes their number. Those of a process that ends are
# not counted.
COUNTED_AT_ONCE = 100


class Compactions(LedgerStore):
    """The ledger's part of compaction: see `pipeline.vector_index.compaction`."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self._uncounted: Counter[str] = Counter()

    async def count(self, name: str, number: int) -> None:
        """Count deleted records of a collection."""
        self._uncounted[name] += number
        if self._uncounted[name] >= COUNTED_AT_ONCE:
            values = {"name": name, "number": self._uncounted.pop(name)}
            await self._direct.rows(statement("compaction_count"), values)

    async def paused(self, names: Collection[str]) -> set[str]:
        """Return the collections whose writers have to wait."""
        if not names:
            return set()
        values = {"names": list(names)}
        rows = await self._direct.rows(statement("compaction_paused"), values)
        return {row.name for row in rows}

    def alone(self) -> AbstractAsyncContextManager[bool]:
        """Let one process at a time compact collections. False if another one does."""
        return advisory_lock(self._engine, COMPACT_LOCK, wait=False)

    async def due(self, *, least: int, limit: int) -> dict[str, int]:
        """Return collections with `least` deleted records or more, and their numbers.

        They have more of them than others, as far as is known.
        """
        values = {"least": least, "limit": limit}
        rows = await self._direct.rows(statement("compaction_due"), values)
        return {row.name: row.deleted for row in rows}

    async def pause(self, name: str, pause: timedelta | None) -> bool:
        """Have the writers of a collection wait; None: no longer. False if it is not due."""
        values = {"name": name, "pause": pause}
        return bool(await self._direct.rows(statement("compaction_pause"), values))

    async def forget(self, name: str) -> None:
        """Record that a collection has no deleted records, and end the pause."""
        await self._direct.rows(statement("compaction_forget"), {"name": name})
