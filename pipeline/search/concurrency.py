"""Concurrency: limits on the searches of a process; others wait, and projects take turns.

One project has at most PROJECT_AT_ONCE searches under way, because each takes parts of the event
loop. Of these, a few compute at once. A search that waits for a remote embedder or reranker leaves
its place to another one.

If the ledger runs on the same cores, more concurrent searches only delay each other. With 16
clients on two cores and two processes, two at once in each answer 410 searches/s (p95 45 ms),
without a limit 360 (p95 56 ms); with Chroma, which computes in a process of its own, three answer
198, two 180. Source: tests/bench/search.py, 100,000 memories in pgvector and in Chroma.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial

from pipeline.domain.errors import Overloaded, StageError
from pipeline.domain.tenants import ProjectId
from pipeline.fair_slots import FairSlots

# With 16, the slowest search of another project beside 200 at once took 1.2 s instead of 0.9, and a
# project alone got no more searches a second, with a local embedder and with one of 80 ms.
PROJECT_AT_ONCE = 4
# Searches that wait for a remote server use no CPU, but hold their candidates if it is a reranker.
# With one of 500 ms these are 128 searches a second, more than a core computes.
PROJECT_AWAY = 64
# A search that holds its slot for 50 ms while the event loop idles waits for a server: its slot is
# released. On a busy machine it waits for the CPU. Released then, 200 searches at once computed
# together, and the health check took 3 s; now 0.3 s, at the same rate.
MOMENT_S, IDLE = 0.05, 0.1
# Beside other work of the loop, a search that waits for a slow server keeps its slot no longer.
LONGEST_SLOT_S = 1.0
NO_LIMIT = 1_000_000
# Rows of an answer, with the turns around each, from which a search is large: it takes seconds of
# the CPU and tens of megabytes.
LARGE_ROWS, LARGE_WAIT_S = 300, 20.0
BUSY = "A project gets one large answer at a time, and others wait: ask for fewer rows."
PROJECT_BUSY = "This project has as many searches under way as it may have: send fewer at once."
SERVER_BUSY = "The server computes other searches, and this one has waited too long for its turn."
TOOK_TOO_LONG = "The search took too long and was stopped: narrow its filter or top_k."


@dataclass(slots=True)
class _Large:
    """Large requests of a project: their number, and the turn of the one that runs."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    requests: int = 0


class _Phase(Enum):
    """New searches, and those that return from a remote server: they take turns for a place."""

    NEW = auto()
    RETURNED = auto()


@dataclass(slots=True)
class _UnderWay:
    """Places of one project, and the number of its searches that have or want one."""

    places: FairSlots[_Phase] = field(default_factory=lambda: FairSlots(PROJECT_AT_ONCE))
    away: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PROJECT_AWAY))
    searches: int = 0


class ConcurrencyLimit:
    """Lets at most `most` searches compute at once; None sets no limit."""

    def __init__(self, most: int | None = None) -> None:
        self._computing: FairSlots[ProjectId] = FairSlots(most or NO_LIMIT)
        self._under_way: dict[ProjectId, _UnderWay] = {}
        self._large: dict[ProjectId, _Large] = {}

    @asynccontextmanager
    async def place(self, project_id: ProjectId, *, within_s: float) -> AsyncIterator[SearchPlace]:
        """Wait until the project has fewer than PROJECT_AT_ONCE searches under way; be one.

        Errors: Overloaded after `within_s` seconds, with what the search waits for then.
        """
        project = self._under_way.setdefault(project_id, _UnderWay())
        project.searches += 1
        place = SearchPlace(project, partial(self.turn, project_id))
        try:
            async with asyncio.timeout(within_s):
                await place.take(_Phase.NEW)
                yield place
        except TimeoutError:
            raise place.refusal() from None
        finally:
            place.leave()
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
        """Wait for a slot to compute and use it, until the search ends or waits for a server."""
        await self._computing.acquire(project_id)
        slot = _Slot(self._computing, project_id)
        slot.watch()
        try:
            yield
        finally:
            slot.pass_on()


class _WaitsFor(Enum):
    """The searches that one waits for: others of its project, or those of all projects."""

    PROJECT = auto()
    SERVER = auto()


class SearchPlace:
    """The place of one search: at most PROJECT_AT_ONCE of a project are taken."""

    def __init__(
        self, project: _UnderWay, turn: Callable[[], AbstractAsyncContextManager[None]]
    ) -> None:
        """`turn` waits for a slot to compute."""
        self._project = project
        self._turn = turn
        self._taken_in: _Phase | None = None
        self._waits_for: _WaitsFor | None = None

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Leave the place to another search while a remote server is waited for, then return."""
        self._waits_for = _WaitsFor.PROJECT
        try:
            async with self._project.away:
                self._waits_for = None
                self.leave()
                yield
        except StageError:  # the search goes on without the answer
            await self.take(_Phase.RETURNED)
            raise
        await self.take(_Phase.RETURNED)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a slot to compute and use it; see `ConcurrencyLimit.turn`."""
        self._waits_for = _WaitsFor.SERVER
        async with self._turn():
            self._waits_for = None
            yield

    def refusal(self) -> Overloaded:
        """The error of a search whose time is over now: what it waits for, or its own work."""
        match self._waits_for:
            case _WaitsFor.PROJECT:
                return Overloaded(PROJECT_BUSY, retry_after_s=1)
            case _WaitsFor.SERVER:
                return Overloaded(SERVER_BUSY, retry_after_s=1, server_wide=True)
            case None:
                return Overloaded(TOOK_TOO_LONG, retry_after_s=1, server_wide=True)

    async def take(self, phase: _Phase) -> None:
        """Wait for the place."""
        self._waits_for = _WaitsFor.PROJECT
        await self._project.places.acquire(phase)
        self._waits_for = None
        self._taken_in = phase

    def leave(self) -> None:
        """Free the place, if the search has it."""
        phase, self._taken_in = self._taken_in, None
        if phase is not None:
            self._project.places.release(phase)


class _Slot:
    """A slot in use. It is passed on at the end, or before, once the event loop idles."""

    def __init__(self, slots: FairSlots[ProjectId], project_id: ProjectId) -> None:
        self._slots = slots
        self._project_id = project_id
        self._passed = False
        self._timer: asyncio.TimerHandle | None = None
        self._until = asyncio.get_running_loop().time() + LONGEST_SLOT_S

    def watch(self) -> None:
        """Look at the event loop after the next moment."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(MOMENT_S, self._look, time.thread_time())

    def _look(self, cpu_s: float) -> None:
        """Pass the slot on if the loop used less than a tenth of the moment, or at the end."""
        is_over = asyncio.get_running_loop().time() >= self._until
        if is_over or time.thread_time() - cpu_s < IDLE * MOMENT_S:
            self.pass_on()
        else:
            self.watch()

    def pass_on(self) -> None:
        """Release the slot, once."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._passed:
            self._passed = True
            self._slots.release(self._project_id)
