"""Concurrency: limits on the searches of a process; others wait, and projects take turns.

One project has at most PROJECT_AT_ONCE searches under way, from the embedding of its query on: 200
at once delayed the health check by 2 s, because each takes its parts of the event loop. Of these, a
few compute at once.

If the ledger runs on the same cores, more concurrent searches only delay each other. With 16
clients on two cores and two processes, two at once in each answer 410 searches/s (p95 45 ms),
without a limit 360 (p95 56 ms); with Chroma, which computes in a process of its own, three answer
198, two 180. Source: tests/bench/search.py, 100,000 memories in pgvector and in Chroma.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pipeline.domain.errors import Overloaded
from pipeline.domain.tenants import ProjectId

# With an embedder of 300 ms, these are 100 searches a second of one project in each process: more
# than a core computes.
PROJECT_AT_ONCE = 32
# A search that holds its slot for more than 50 ms, ten times its usual CPU time, is blocked on I/O,
# not using the CPU: its slot is released.
MOMENT_S = 0.05
NO_LIMIT = 1_000_000
# Rows of an answer, with the turns around each, from which a search is large: it takes seconds of
# the CPU and tens of megabytes.
LARGE_ROWS, LARGE_WAIT_S = 300, 20.0
BUSY = "A project gets one large answer at a time, and others wait: ask for fewer rows."


@dataclass(slots=True)
class _Large:
    """Large requests of a project: their number, and the turn of the one that runs."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    requests: int = 0


class FairSlots:
    """A number of slots. Projects that wait for one take turns, each first come, first served."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        # The project at the front is next; one that got a slot moves to the end.
        self._waiting: OrderedDict[ProjectId, deque[asyncio.Future[None]]] = OrderedDict()

    async def acquire(self, project_id: ProjectId) -> None:
        """Take a slot; wait if none is free."""
        if self._free:
            self._free -= 1
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(project_id, deque()).append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            # `release` skips a cancelled future. One that has the slot already passes it on.
            if not slot.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give the slot to the next project that waits, or set it free."""
        while self._waiting:
            project_id, slots = self._waiting.popitem(last=False)
            slot = slots.popleft()
            if slots:
                self._waiting[project_id] = slots
            if not slot.done():
                slot.set_result(None)
                return
        self._free += 1


@dataclass(slots=True)
class _UnderWay:
    """Slots of one project, and the number of its searches that have or want one."""

    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PROJECT_AT_ONCE))
    searches: int = 0


class ConcurrencyLimit:
    """Lets at most `most` searches compute at once; None sets no limit."""

    def __init__(self, most: int | None = None) -> None:
        self._computing = FairSlots(most or NO_LIMIT)
        self._under_way: dict[ProjectId, _UnderWay] = {}
        self._large: dict[ProjectId, _Large] = {}

    @asynccontextmanager
    async def under_way(self, project_id: ProjectId) -> AsyncIterator[None]:
        """Wait until the project has fewer than PROJECT_AT_ONCE searches under way; be one."""
        project = self._under_way.setdefault(project_id, _UnderWay())
        project.searches += 1
        try:
            async with project.slots:
                yield
        finally:
            project.searches -= 1
            if not project.searches:
                del self._under_way[project_id]

    @asynccontextmanager
    async def one_large(
        self, project_id: ProjectId, rows: int, *, above: int = LARGE_ROWS
    ) -> AsyncIterator[None]:
        """Let one large request of a project run at a time, until its answer is built.

        `rows`: the most rows of the answer; up to `above` there is no limit. Sixteen large searches
        at once delayed the searches of other projects by 15 s. Errors: Overloaded after 20 s.
        """
        if rows <= above:
            yield
            return
        large = self._large.setdefault(project_id, _Large())
        large.requests += 1
        try:
            try:
                async with asyncio.timeout(LARGE_WAIT_S):
                    await large.turn.acquire()
            except TimeoutError:
                raise Overloaded(BUSY, retry_after_s=5) from None
            try:
                yield
            finally:
                large.turn.release()
        finally:
            large.requests -= 1
            if not large.requests:
                del self._large[project_id]

    @asynccontextmanager
    async def turn(self, project_id: ProjectId) -> AsyncIterator[None]:
        """Wait for a slot to compute and use it, for at most 50 ms; then it is released."""
        await self._computing.acquire(project_id)
        passed = False

        def pass_on() -> None:
            nonlocal passed
            if not passed:
                passed = True
                self._computing.release()

        late = asyncio.get_running_loop().call_later(MOMENT_S, pass_on)
        try:
            yield
        finally:
            late.cancel()
            pass_on()
