"""Lets so many searches compute at once; the others wait their turn, first come, first served.

Where the ledger shares the cores, more at once only make each other late. With 16 callers on two
cores and two processes, two at once in each answer 410 a second with p95 45 ms, as many as come
360 with 56 ms; with Chroma, which computes in a process of its own, three answer 198, two 180.
Source: tests/bench/search.py, 100,000 memories in pgvector and in Chroma.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

# Whoever takes longer, ten times what a search does, waits for others, an index that hangs or a
# reranker. He computes nothing, so the next may.
MOMENT_S = 0.05
NO_LIMIT = 1_000_000


class Turnstile:
    """`most` at once; None lets everybody pass."""

    def __init__(self, most: int | None = None) -> None:
        self._free = asyncio.Semaphore(most or NO_LIMIT)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
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
