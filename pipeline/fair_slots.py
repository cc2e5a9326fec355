"""Slots for which groups of coroutines take turns."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
# Urgent groups get this many slots in a row while others wait; then one of the others gets one.
URGENT_IN_A_ROW = 8


class FairSlots(Generic[K]):
    """A number of slots. Groups that wait for one take turns, each first come, first served.

    Urgent groups come before the others, which get at least one slot in nine.
    """

    def __init__(self, slots: int) -> None:
        self._free = slots
        # The group at the front is next; one that got a slot moves to the end.
        self._urgent: OrderedDict[K, deque[asyncio.Future[None]]] = OrderedDict()
        self._others: OrderedDict[K, deque[asyncio.Future[None]]] = OrderedDict()
        self._in_a_row = 0

    async def acquire(self, group: K, *, urgent: bool = False) -> None:
        """Take a slot; wait if none is free."""
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
        if self._others and (not self._urgent or self._in_a_row >= URGENT_IN_A_ROW):
            self._in_a_row = 0
            return self._others
        self._in_a_row += 1
        return self._urgent
