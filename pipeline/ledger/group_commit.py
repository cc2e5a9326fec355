"""Adds that arrive while a commit is under way share the next one.

Nobody waits for company: an add that comes alone is written alone, at once. Under load one commit
carries many, so its cost is shared and callers of one lane do not queue for its row one by one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from sqlalchemy.exc import DBAPIError

from pipeline.ledger.lanes import Accepted, Add, Lanes

# A second writer prepares its group while the first one's commit is on its way to the disk.
WRITERS = 2
LARGEST_GROUP = 64

Waiting = tuple[Add, "asyncio.Future[Accepted]"]


class GroupCommit:
    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._waiting: deque[Waiting] = deque()
        self._writers: set[asyncio.Task[None]] = set()

    async def accept(self, add: Add) -> Accepted:
        """As Lanes.accept, for one add: returns after the commit that holds it, or raises."""
        kept: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()
        self._waiting.append((add, kept))
        if len(self._writers) < WRITERS:
            writer = asyncio.create_task(self._write())
            self._writers.add(writer)
            writer.add_done_callback(self._writers.discard)
        return await kept

    async def _write(self) -> None:
        while self._waiting:
            size = min(len(self._waiting), LARGEST_GROUP)
            await self._commit([self._waiting.popleft() for _ in range(size)])

    async def _commit(self, group: Sequence[Waiting]) -> None:
        """Whatever comes of it, no caller is left waiting."""
        adds = [add for add, _ in group]
        [result] = await asyncio.gather(self._lanes.accept(adds), return_exceptions=True)
        match result:
            case BaseException() if len(group) > 1 and _one_is_at_fault(result):
                for alone in group:  # the others must not pay for it
                    await self._commit([alone])
            case BaseException():
                for kept in _still_awaited(group):
                    kept.set_exception(result)
            case accepted:
                for (_, kept), one in zip(group, accepted, strict=True):
                    if not kept.done():  # its caller went away; the add is kept all the same
                        kept.set_result(one)


def _still_awaited(group: Sequence[Waiting]) -> list[asyncio.Future[Accepted]]:
    return [kept for _, kept in group if not kept.done()]


def _one_is_at_fault(error: BaseException) -> bool:
    """The database refused what it was given; it did not go away."""
    return isinstance(error, DBAPIError) and not error.connection_invalidated
