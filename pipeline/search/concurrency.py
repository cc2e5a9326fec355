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

# A search that holds its slot for more than 50 ms, ten times its usual CPU time, is blocked on I/O,
# not using the CPU: its slot is released.
MOMENT_S = 0.05
NO_LIMIT = 1_000_000


class Turnstile:
    """Lets at most `most` searches compute at once; None sets no limit."""

    def __init__(self, most: int | None = None) -> None:
        self._free = asyncio.Semaphore(most or NO_LIMIT)

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
