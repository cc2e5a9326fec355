"""Which queue a hint stands in: with those of projects about as busy as its own.

    mem.lane         projects with up to 10 lanes at work
    mem.lane.10      up to 100
    mem.lane.100     up to 1,000
    mem.lane.1000    more

Workers take from the queues that hold something in turn, so nobody waits behind a project much
busier than his own. Which queue a hint is in decides only when it is taken: a doubled hint in
another one is as stale as any double.
"""

from __future__ import annotations

import bisect

QUEUES = ("mem.lane", "mem.lane.10", "mem.lane.100", "mem.lane.1000")
MOST_LANES = (10, 100, 1_000)


def queue_of(busy_lanes: int) -> str:
    """The queue for a hint of a project that has so many lanes at work, its own included."""
    return QUEUES[bisect.bisect_left(MOST_LANES, busy_lanes)]
