"""Slots for which groups of coroutines take turns."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
# Urgent groups get this many slots in a row while others wait; then one of these gets one.
URGENT_IN_A_ROW = 8


class FairSlots(Generic[K]):
    """A number of slots. Groups that wait for one take turns, each first come, first served.

    Urgent groups come before the others, up to URGENT_IN_A_ROW times while one of these waits.
    """

    def __init__(self, slots: int) -> None:
        self._free = slots
        # The group at the front is next; one that got a slot moves to the end.
        self._urgent: OrderedDict[K, deque[asyncio.Future[None]]] = OrderedDict()
        self._others: OrderedDict[K, deque[asyncio.Future[None]]] = OrderedDict()
        self._in_a_row = 0

    def take(self) -> bool:
        """Take a slot if one is free."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def acquire(self, group: K, *, urgent: bool = False) -> None:
        """Take a slot; wait if none is free."""
        if self.take():
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
        while waiting := self._next():
            group, slots = waiting.popitem(last=False)
            slot = slots.popleft()
            if slots:
                waiting[group] = slots
            if not slot.done():
                slot.set_result(None)
                return
        self._free += 1

    def _next(self) -> OrderedDict[K, deque[asyncio.Future[None]]]:
        """The groups of which one is next."""
        if not self._urgent or (self._others and self._in_a_row >= URGENT_IN_A_ROW):
            self._in_a_row = 0
            return self._others
        self._in_a_row += bool(self._others)
        return self._urgent
