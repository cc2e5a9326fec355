"""Fair queues: the order in which workers take hints, each of which claims its lane.

A hint goes into a queue by the priority of its lane and the number of busy lanes of its class.

    mem.lane         projects with up to 10 busy lanes     mem.low         the same, for lanes
    mem.lane.10      up to 100                             mem.low.10      with only events of
    mem.lane.100     up to 1,000                           mem.low.100     low priority
    mem.lane.1000    more                                  mem.low.1000

Workers take from the queues of a priority in turn, so no project waits behind a much busier one.
Low priority is taken if the other queues are empty, and for at least one hint of TAKES. The queue
only affects when a hint is taken: a duplicate in another queue is as stale as any other.
"""

from __future__ import annotations

import bisect
import math
import time
from collections.abc import Callable, Iterable

NORMAL_QUEUES = ("mem.lane", "mem.lane.10", "mem.lane.100", "mem.lane.1000")
LOW_QUEUES = ("mem.low", "mem.low.10", "mem.low.100", "mem.low.1000")
QUEUES = NORMAL_QUEUES + LOW_QUEUES
MOST_LANES = (10, 100, 1_000)
# One hint of this many is of low priority, even if others wait: so back-fill goes on under any
# load, and costs the others a tenth of the hints at most.
TAKES = 10
# Seconds until a worker looks again if it has a place for a stage of low priority, and those
# without a hint of normal priority after which it takes others.
RECHECK_S = 0.1


def queue_of(busy_lanes: int, *, low: bool = False) -> str:
    """Name of the queue for a class with this number of busy lanes, the hint's lane included."""
    queues = LOW_QUEUES if low else NORMAL_QUEUES
    return queues[bisect.bisect_left(MOST_LANES, busy_lanes)]


def is_low(queue: str) -> bool:
    """True for a queue of low priority."""
    return queue in LOW_QUEUES


def of_priority(queue: str, *, low: bool) -> str:
    """The queue of this priority with the same number of busy lanes."""
    place = QUEUES.index(queue) % len(NORMAL_QUEUES)
    return (LOW_QUEUES if low else NORMAL_QUEUES)[place]


class TakeOrder:
    """Order in which a worker looks for the next hint: a queue strategy of kombu.

    `low_fits`: False while the worker runs its maximum of stages of low priority. Their queues are
    then left out.
    """

    def __init__(self, low_fits: Callable[[], bool]) -> None:
        self._low_fits = low_fits
        self._normal: list[str] = []
        self._low: list[str] = []
        self._others = 0  # hints of normal priority since the last one of low priority
        self.restricted = False

    def update(self, queues: Iterable[str]) -> None:
        """Set the queues."""
        names = list(queues)
        self._normal = [queue for queue in names if not is_low(queue)]
        self._low = [queue for queue in names if is_low(queue)]

    def consume(self, most: int) -> list[str]:
        """The queues in order: the first one with a hint is taken from."""
        self.restricted = bool(self._low) and not self._low_fits()
        low = [] if self.restricted else self._low
        first = self._others >= TAKES - 1
        return ([*low, *self._normal] if first else [*self._normal, *low])[:most]

    def rotate(self, taken: str) -> str:
        """Move the queue that a hint was taken from behind the others of its priority."""
        queues = self._low if is_low(taken) else self._normal
        if taken in queues:
            queues.append(queues.pop(queues.index(taken)))
        self._others = 0 if is_low(taken) else self._others + 1
        return taken


class LowGate:
    """Decision of a worker whether a broker that pushes hints may send some of low priority.

    With TakeOrder the worker chooses; here it can only pause their queues. They are open while no
    hints of normal priority arrive, and beside those for at least one hint of TAKES.
    """

    def __init__(
        self, low_fits: Callable[[], bool], now: Callable[[], float] = time.monotonic
    ) -> None:
        """`low_fits`: as in TakeOrder."""
        self._low_fits = low_fits
        self._now = now
        self._normal_at = -math.inf  # time of the last hint of normal priority
        self._others = 0  # hints of normal priority since the last one of low priority

    def took(self, queue: str) -> None:
        """Note the queue of a hint that has arrived."""
        if is_low(queue):
            self._others = 0
        else:
            self._others += 1
            self._normal_at = self._now()

    def is_open(self) -> bool:
        """True if the next hint may be of low priority."""
        quiet = self._now() - self._normal_at >= RECHECK_S
        return self._low_fits() and (quiet or self._others >= TAKES - 1)
