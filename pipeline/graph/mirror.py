"""Mirror: keeps a graph server equal to the ledger's graph, from the outbox (see outbox.py).

One process at a time writes, by an advisory lock of PostgreSQL. A process whose connection breaks
loses the lock without notice, so each one claims the server first, and the server refuses a writer
that another one has followed.
"""

from __future__ import annotations

import structlog

from pipeline.domain.errors import StoreUnavailable
from pipeline.graph.outbox import GraphOutbox
from pipeline.graph.ports import GraphMirror

log = structlog.get_logger()

# Number of changes in one transaction of the server.
AT_ONCE = 500


class Mirroring:
    """Writes the changes that wait to the graph server. Safe to repeat and to stop at any point."""

    def __init__(self, mirror: GraphMirror, outbox: GraphOutbox) -> None:
        self.mirror = mirror
        self.outbox = outbox
        self._registered = False

    async def catch_up(self) -> int:
        """Write all changes that wait. Returns their number; 0 while another process writes.

        The first time, and after `refill`, the server is wiped and filled.
        Errors: StoreUnavailable; the changes that were not written wait.
        """
        async with self.outbox.alone(wait=False) as locked:
            return await self._drain() if locked and await self._ready() else 0

    async def settle(self) -> int:
        """Wait until no other process writes, then write all changes. Returns their number.

        Errors: StoreUnavailable, also if a later process has registered another server.
        """
        async with self.outbox.alone(wait=True):
            if not await self._ready():
                raise StoreUnavailable("Another process uses another graph server.")
            return await self._drain()

    async def rebuild(self) -> int:
        """Wipe the server and write the whole graph. Returns the number of rows written.

        Searches read the ledger until then. Errors: StoreUnavailable; the build continues later.
        """
        await self.outbox.refill()
        return await self.settle()

    async def heal(self) -> None:
        """Have the server filled again if it lost its data, such as after a restart without disk.

        Errors: StoreUnavailable.
        """
        if await self.outbox.expects() and await self.mirror.counts() == (0, 0):
            log.warning("graph_mirror_lost", mirror=self.mirror.name)
            await self.outbox.refill()

    async def close(self) -> None:
        """Close the connections to the server."""
        await self.mirror.close()

    async def _drain(self) -> int:
        count = 0
        if await self.outbox.batch(1) is None:
            return count
        await self.mirror.claim()
        while (batch := await self.outbox.batch(AT_ONCE)) is not None:
            await self.mirror.write(batch.changes)
            await self.outbox.done(batch)
            count += len(batch.ids)
        return count

    async def _ready(self) -> bool:
        """Register and fill the server, once. False if a later process registered another one."""
        if not self._registered:
            await self.outbox.register(self.mirror.name)
            self._registered = True
        filled = await self.outbox.filled(self.mirror.name)
        if filled is False:
            # Read again after the claim: a process without the lock wipes nothing that is filled.
            await self.mirror.claim()
            filled = await self.outbox.filled(self.mirror.name)
        if filled is False:
            log.info("graph_mirror_fill", mirror=self.mirror.name)
            await self.mirror.prepare()
            await self.mirror.wipe()
            await self.outbox.fill()
        return filled is not None
