"""Who computes: a few stages at a time in one process, those of the least busy projects first.

More of them would not do more, for they share one core and a few connections; each would only wait
for all. A stage that waits for a remote model steps aside: any number may wait there.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

# As many as a process has connections to the ledger by default. A tenant's p95 delay beside another
# one's 1,500 queued scopes, as a multiple of alone: 18 to 43 with no limit, 5 to 6 with 16 or 8; a
# wide drain is as fast with 16 as with none. Source: tests/bench/fairness.py, 2 cores, 100 threads.
PLACES = 16


class Turns:
    """Of those who wait the lowest rank is next; among equals the first. One event loop's."""

    def __init__(self, places: int = PLACES) -> None:
        self._free = places
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    @asynccontextmanager
    async def take(self, rank: int) -> AsyncIterator[None]:
        """Compute in here; `aside` gives the place to another meanwhile."""
        turn = _Turn(self, rank)
        await turn.begin()
        token = _mine.set(turn)
        try:
            yield
        finally:
            _mine.reset(token)
            turn.end()

    async def enter(self, rank: int) -> None:
        if self._free:
            self._free -= 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (rank, next(self._order), place))
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():  # given to us a moment ago
                self.leave()
            raise

    def leave(self) -> None:
        while self._waiting:
            place = heapq.heappop(self._waiting)[-1]
            if not place.cancelled():
                place.set_result(None)
                return
        self._free += 1


class _Turn:
    def __init__(self, turns: Turns, rank: int) -> None:
        self._turns = turns
        self._rank = rank
        self._held = False

    async def begin(self) -> None:
        await self._turns.enter(self._rank)
        self._held = True

    def end(self) -> None:
        if self._held:
            self._held = False
            self._turns.leave()


_mine: ContextVar[_Turn | None] = ContextVar("turn", default=None)


@asynccontextmanager
async def aside() -> AsyncIterator[None]:
    """Wait in here for somebody far away, and hold up nobody. Without a turn it changes nothing."""
    turn = _mine.get()
    if turn is None:
        yield
        return
    turn.end()
    try:
        yield
    finally:
        await turn.begin()
