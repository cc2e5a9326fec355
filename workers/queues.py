"""Queues of hints, by the number of busy lanes of a hint's project.

    mem.lane         projects with up to 10 busy lanes
    mem.lane.10      up to 100
    mem.lane.100     up to 1,000
    mem.lane.1000    more

Workers take from the queues in turn, so no project waits behind a much busier one. The queue only
affects when a hint is taken: a duplicate in another queue is as stale as any other.
"""

from __future__ import annotations

import bisect

QUEUES = ("mem.lane", "mem.lane.10", "mem.lane.100", "mem.lane.1000")
MOST_LANES = (10, 100, 1_000)


def queue_of(busy_lanes: int) -> str:
    """Name of the queue for a project with this number of busy lanes, the hint's lane included."""
    return QUEUES[bisect.bisect_left(MOST_LANES, busy_lanes)]
