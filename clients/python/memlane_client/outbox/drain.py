"""Send what the outbox holds, then end: for processes that only append, such as hooks.

At most two processes wait at a time: the sender and the next one, which holds `next.lock`. A third
one may end at once, because the next one reads what was appended before it became the sender.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from memlane_client.outbox.journal import Journal
from memlane_client.outbox.locks import LockFile
from memlane_client.outbox.sender import Sender

POLL_S = 0.1


async def drain(
    folder: Path, connect: Callable[[], httpx.AsyncClient], *, within_s: float
) -> int | None:
    """Send until nothing is pending, or the time is over.

    Returns the number of pending adds, None if another process is next.
    """
    journal, deadline = Journal(folder), time.monotonic() + within_s
    async with connect() as http:
        sender = Sender(journal, http, lambda _: None)
        with _next_in_line(journal.folder) as is_next:
            if not is_next:
                return None
            await sender.step()
            while not journal.sending and time.monotonic() < deadline:
                await asyncio.sleep(POLL_S)
                await sender.step()
        # Read once more: a process that was not next may have appended before the lock was free.
        while journal.sending and (pause_s := await sender.step()) is not None:
            if time.monotonic() >= deadline:
                break
            await asyncio.sleep(min(pause_s, 1.0))
    journal.resign()
    return len(journal.pending())


@contextmanager
def _next_in_line(folder: Path) -> Iterator[bool]:
    """Hold the place behind the sender; False if another process has it."""
    lock = LockFile(folder / "next.lock")
    try:
        yield lock.try_lock()
    finally:
        lock.close()
