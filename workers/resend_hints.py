"""Resend hints: publish again the hints of lanes that are due, because a message may be lost.

A hint is lost with a killed process, or with the data of the broker. The ledger knows which lanes
wait and since when, so the sweeper publishes their hints from it; a second hint does no harm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog

from pipeline import telemetry
from pipeline.domain.lanes import LaneClass
from pipeline.lanes.due import Swept
from pipeline.lanes.load import LoadView
from pipeline.stores import Ledger
from workers.dispatch import CeleryDispatcher
from workers.fair_queues import is_low, queue_of

log = structlog.get_logger()

# Maximum number of lanes queued at a time, about a second of publishing.
LANES_A_TICK = 1_000
# In a queue with at least DEEP hints, a hint counts as lost only after PATIENCE_S.
DEEP, PATIENCE_S = 100, 60.0
# Hints of low priority wait behind all others: these values hold for their queues.
LOW_DEEP, LOW_PATIENCE_S = 10, 600.0


class ResendHints:
    """Publisher of the hints of due lanes. It remembers when the broker was away or wiped."""

    def __init__(self, ledger: Ledger, load: LoadView, dispatcher: CeleryDispatcher) -> None:
        self._now = ledger.now
        self._lanes = ledger.due_lanes
        self._load = load
        self._dispatcher = dispatcher
        # True while the broker may have lost hints.
        self._doubt = False
        # Time at which the broker answered again, until all hints before it are published again.
        self._back_at: datetime | None = None

    async def resend(self) -> None:
        """Publish hints of the lanes that are due.

        While the broker does not answer, nothing changes. After an outage or a wipe of the broker,
        every queued lane gets a new hint, because the old one may be lost.
        """
        backlogs = await asyncio.to_thread(self._dispatcher.backlogs)
        if backlogs is None:
            if not self._doubt:
                log.warning("broker_down")
            self._doubt = True
            return
        if await asyncio.to_thread(self._dispatcher.forgot):
            log.warning("broker_blank")
            self._doubt = True
        await self._doubt_earlier_hints()
        busy = await self._load.lanes()
        swept = await self._lanes.sweep(
            limit=LANES_A_TICK,
            patient=_patient(backlogs, busy),
            patience_s=PATIENCE_S,
            low_patience_s=LOW_PATIENCE_S,
        )
        if swept:
            await asyncio.to_thread(self._publish, swept, busy)

    async def _doubt_earlier_hints(self) -> None:
        """Make lanes due whose hints were sent before the broker answered again, if it was away."""
        if self._doubt:
            self._back_at, self._doubt = await self._now(), False
        if self._back_at:
            doubted = await self._lanes.doubt_hints(
                sent_before=self._back_at, patience_s=LOW_PATIENCE_S, limit=LANES_A_TICK
            )
            if doubted < LANES_A_TICK:
                self._back_at = None

    def _publish(self, swept: Sequence[Swept], busy: Mapping[LaneClass, int]) -> None:
        """Publish a hint for each lane; stop if the broker does not accept one."""
        for lane in swept:
            hint = lane.hint
            queue = queue_of(busy.get((lane.project_id, hint.low), 0), low=hint.low)
            telemetry.swept.labels(lane.was).inc()
            log.info("lane_swept", lane_id=str(hint.lane_id), was=lane.was, stage=hint.stage)
            if not self._dispatcher.publish(hint, queue):
                self._doubt = True
                return


def _patient(backlogs: Mapping[str, int], busy: Mapping[LaneClass, int]) -> list[LaneClass]:
    """The classes whose hints stand in a long queue, so that a late one is not lost."""
    deep = {
        queue for queue, hints in backlogs.items() if hints >= (LOW_DEEP if is_low(queue) else DEEP)
    }
    return [key for key, lanes in busy.items() if queue_of(lanes, low=key[1]) in deep]
