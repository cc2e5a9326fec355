"""The queue of a lane's next hint, by the present number of busy lanes of its project.

A lane with a backlog goes from batch to batch without resting. In the queue that it woke up in, the
lanes of a burst would stay before those of quieter projects: beside 400 lanes of one project, 40 of
another one got 13 % of the hints.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

from pipeline.domain.lanes import Hint, LaneClass
from pipeline.ledger.failures import LedgerUnavailable
from workers.fair_queues import of_priority, queue_of

log = structlog.get_logger()

# The numbers are read this often while hints are published, and an older reading is not used.
READ_EVERY_S, OLDEST_S = 1.0, 5.0


class BusyLanesView(Protocol):
    """Reader of the numbers; see pipeline.lanes.load."""

    async def lanes(self) -> Mapping[LaneClass, int]:
        """Return the number of busy lanes of each class."""


class BusyLanes:
    """Busy lanes of each class, at most some seconds old; used in the event loop."""

    def __init__(self, view: BusyLanesView, now: Callable[[], float] = time.monotonic) -> None:
        self._view = view
        self._now = now
        self._lanes: Mapping[LaneClass, int] = {}
        self._read_at = self._begun_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    def queue_for(self, hint: Hint, queue: str) -> str:
        """The queue of a lane's next hint; without a reading the one that the last came from."""
        now = self._now()
        if now - self._begun_at >= READ_EVERY_S and (self._reading is None or self._reading.done()):
            self._begun_at = now
            self._reading = asyncio.create_task(self._read())
        known = self._lanes if now - self._read_at <= OLDEST_S else {}
        if hint.project_id is None or (hint.project_id, hint.low) not in known:
            return of_priority(queue, low=hint.low)
        return queue_of(known[hint.project_id, hint.low], low=hint.low)

    async def _read(self) -> None:
        try:
            self._lanes = await self._view.lanes()
        except LedgerUnavailable as error:
            log.warning("busy_lanes_unknown", error=type(error).__name__)
        else:
            self._read_at = self._now()
