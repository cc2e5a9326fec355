"""CPU-heavy work beside the event loop.

`beside_loop` uses one thread of the process. One, because each further one would only share the GIL
with the loop: the loop then waits for all of them in turn. So the work of one request delays other
large work, and small work hardly.

A `SharedThread` is for work that releases the GIL, such as an embedder. Long work goes in pieces,
and what a search waits for comes before the next piece of any other.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from pipeline.fair_slots import FairSlots

T = TypeVar("T")

# Longest time for which a thread that computes keeps the GIL while the event loop waits for it.
# With Python's default of 5 ms, an echo beside such a thread took 8 to 16 ms instead of 1.5,
# because the loop waits at each of its steps; the thread did no less work.
SWITCH_INTERVAL_S = 0.001

_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cpu")
_searching: ContextVar[Hashable] = ContextVar("_searching", default=None)


def share_gil() -> None:
    """Let the event loop wait 1 ms at most for a thread that computes; once for the process."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)


async def beside_loop(work: Callable[[], T], *, inline: bool = False) -> T:
    """The result of `work()`, computed in the thread; `inline`: here, because it is short.

    A thread costs 0.1 ms more, and work of up to about 10 ms may stay on the loop. The work must
    not hold the GIL for long in one call of C code.
    """
    if inline:
        return work()
    run = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(_THREAD, run, work)


@contextmanager
def searching(group: Hashable) -> Iterator[None]:
    """Put the work of this block before other work in every SharedThread; groups take turns."""
    token = _searching.set(group)
    try:
        yield
    finally:
        _searching.reset(token)


class SharedThread:
    """One thread for pieces of work. A piece of a search is next, and callers take turns."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._turns: FairSlots[Hashable] = FairSlots(1)

    async def run(self, piece: Callable[[], T]) -> T:
        """The result of `piece()`; of several calls, each waits for its turn."""
        search = _searching.get()
        await self._turns.acquire(search, urgent=search is not None)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, piece)
        finally:
            self._turns.release(search)
