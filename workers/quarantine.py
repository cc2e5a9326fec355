"""Quarantine: lanes that may have crashed a worker run one at a time.

When a worker dies, it is unknown which of its lanes killed it. So each of these suspects is retried
with no other suspect in the same process: if the worker dies again, that lane is the cause.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

# Seconds that the process must have run before it tries a suspect, doubled with each crash of the
# suspect. A process that dies from another cause dies before that, and no suspect is blamed.
# Suspects with the fewest crashes come first.
FIRST_PROOF_S, LONGEST_PROOF_S = 1.0, 16.0


def proof_s(crashes: int) -> float:
    """Seconds that a process must have run before it tries a suspect that crashed this often."""
    doubled: float = FIRST_PROOF_S * 2 ** min(crashes, 16)
    return min(doubled, LONGEST_PROOF_S)


class Quarantine:
    """Runs suspects of this process one at a time.

    `stand_aside`: called when a suspect starts to wait, so that it does not block other work.
    """

    def __init__(self, stand_aside: Callable[[], None] = lambda: None) -> None:
        self._stand_aside = stand_aside
        self._born = time.monotonic()
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def alone(self, crashes: int) -> AsyncIterator[None]:
        """Wait for the process's age and for other suspects; then run the block."""
        self._stand_aside()
        await asyncio.sleep(self._born + proof_s(crashes) - time.monotonic())
        async with self._turn:
            yield
