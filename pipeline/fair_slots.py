"""Slots for which groups of coroutines take turns."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class FairSlots(Generic[K]):
    """A number of slots. Groups that wait for one take turns, each first come, first served."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        # The group at the front is next; one that got a slot moves to the end.
        self._urgent: OrderedDict[K, deque[asyncio.Future[None]]] = OrderedDict()
        self._others: OrderedDict[K, deque[asyncio.Future[None]]] = OrderedDict()

    async def acquire(self, group: K, *, urgent: bool = False) -> None:
        """Take a slot; wait if none is free. Urgent groups come before all others."""
        if self._free:
            self._free -= 1
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._urgent if urgent else self._others
        waiting.setdefault(group, deque()).append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            # `release` skips a cancelled future. One that has the slot already passes it on.
            if not slot.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give the slot to the next group that waits, or set it free."""
        while waiting := self._urgent or self._others:
            group, slots = waiting.popitem(last=False)
            slot = slots.popleft()
            if slots:
                waiting[group] = slots
            if not slot.done():
                slot.set_result(None)
                return
        self._free += 1
