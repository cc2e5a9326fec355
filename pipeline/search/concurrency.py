"""Concurrency: a limit on the searches that compute at once; others wait, first come, first served.

If the ledger runs on the same cores, more concurrent searches only delay each other. With 16
clients on two cores and two processes, two at once in each answer 410 searches/s (p95 45 ms),
without a limit 360 (p95 56 ms); with Chroma, which computes in a process of its own, three answer
198, two 180. Source: tests/bench/search.py, 100,000 memories in pgvector and in Chroma.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pipeline.domain.errors import Overloaded
from pipeline.domain.tenants import ProjectId

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


class ConcurrencyLimit:
    """Lets at most `most` searches compute at once; None sets no limit."""

    def __init__(self, most: int | None = None) -> None:
        self._free = asyncio.Semaphore(most or NO_LIMIT)
        self._large: dict[ProjectId, _Large] = {}

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
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a slot and use it, for at most 50 ms; then it is released."""
        await self._free.acquire()
        passed = False

        def pass_on() -> None:
            nonlocal passed
            if not passed:
                passed = True
                self._free.release()

        late = asyncio.get_running_loop().call_later(MOMENT_S, pass_on)
        try:
            yield
        finally:
            late.cancel()
            pass_on()
