"""Suspects, one at a time: lanes whose earlier attempts ended with their workers.

It is unknown which of a dead worker's lanes has killed it. So each is tried again with no other
suspect beside it: a worker that dies then was killed by that lane.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

# How long this process must have lived before it tries a suspect, doubled with each worker that the
# suspect has killed: a process that dies of something else dies earlier and charges no suspect. The
# suspects that killed least get their turn first.
FIRST_PROOF_S, LONGEST_PROOF_S = 1.0, 16.0


def proof_s(crashes: int) -> float:
    """Seconds that a process must have lived before it tries a suspect with this many crashes."""
    doubled: float = FIRST_PROOF_S * 2 ** min(crashes, 16)
    return min(doubled, LONGEST_PROOF_S)


class Quarantine:
    """`stand_aside` is called as a suspect joins the line: it takes no place of other work."""

    def __init__(self, stand_aside: Callable[[], None] = lambda: None) -> None:
        self._stand_aside = stand_aside
        self._born = time.monotonic()
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def alone(self, crashes: int) -> AsyncIterator[None]:
        self._stand_aside()
        await asyncio.sleep(self._born + proof_s(crashes) - time.monotonic())
        async with self._turn:
            yield
