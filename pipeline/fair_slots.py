"""Slots for which groups of coroutines take turns."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable
from time import monotonic
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
# Urgent groups get this many slots in a row while others wait; then one of these gets one.
URGENT_IN_A_ROW = 8
# A group is active for this long after it has got a slot.
ACTIVE_S = 1.0


class FairSlots(Generic[K]):
    """A number of slots. Groups that wait for one take turns, each first come, first served.

    Urgent groups come before the others, up to URGENT_IN_A_ROW times while one of these waits.
    `share`: the most slots that a group has while others are active; None sets no limit. The group
    None has no limit, and does not count as another one.
    """

    def __init__(self, slots: int, *, share: int | None = None) -> None:
        self._free = slots
        self._share = share
        self._held: Counter[K] = Counter()
        # When each active group got its last slot, the earliest first.
        self._active: OrderedDict[K, float] = OrderedDict()
        # The group at the front is next; one that got a slot moves to the end.
        self._urgent: OrderedDict[K, deque[asyncio.Future[None]]] = OrderedDict()
        self._others: OrderedDict[K, deque[asyncio.Future[None]]] = OrderedDict()
        self._in_a_row = 0

    def take(self, group: K) -> bool:
        """Take a slot if one is free that the group may have."""
        if not self._free or not self._admits(group):
            return False
        self._grant(group)
        return True

    async def acquire(self, group: K, *, urgent: bool = False) -> None:
        """Take a slot; wait if none is free that the group may have."""
        if self.take(group):
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._urgent if urgent else self._others
        waiting.setdefault(group, deque()).append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            # `release` skips a cancelled future. One that has the slot already passes it on.
            if not slot.cancelled():
                self.release(group)
            raise

    def release(self, group: K) -> None:
        """Give back a slot of the group, to the next group that waits."""
        self._free += 1
        if self._held[group] > 1:
            self._held[group] -= 1
        else:
            del self._held[group]
        while self._free and self._pass_on():
            pass

    def _pass_on(self) -> bool:
        """Give a free slot to the next group that may have it. False if there is none."""
        waiting = self._next()
        for group in filter(self._admits, waiting):
            slots = waiting.pop(group)
            slot = slots.popleft()
            if slots:
                waiting[group] = slots
            if not slot.done():
                self._grant(group)
                slot.set_result(None)
            return True
        return False

    def _grant(self, group: K) -> None:
        """Count a slot as one of the group."""
        self._free -= 1
        self._held[group] += 1
        if self._share is not None and group is not None:
            self._active[group] = monotonic()
            self._active.move_to_end(group)

    def _admits(self, group: K) -> bool:
        """Tell if the group may have one more slot."""
        if self._share is None or group is None or self._held[group] < self._share:
            return True
        while self._active and next(iter(self._active.values())) < monotonic() - ACTIVE_S:
            self._active.popitem(last=False)
        return not self._active.keys() - {group}

    def _next(self) -> OrderedDict[K, deque[asyncio.Future[None]]]:
        """The groups of which one is next."""
        if not self._urgent or (self._others and self._in_a_row >= URGENT_IN_A_ROW):
            self._in_a_row = 0
            return self._others
        self._in_a_row += bool(self._others)
        return self._urgent
