"""Backpressure: adds are accepted or refused by the load, which is read every second."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import structlog

from pipeline import telemetry
from pipeline.domain.backpressure import Backlog, Limits, Load, admit
from pipeline.domain.errors import Overloaded
from pipeline.domain.lanes import Hint, LaneClass
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.lanes.load import LoadView
from pipeline.ledger.failures import LedgerUnavailable
from workers.dispatch import BackgroundDispatcher

log = structlog.get_logger()

LOOK_EVERY_S = 1.0


class FairDispatcher:
    """Publishes a hint into the queue of projects that are about as busy as its own."""

    def __init__(self, publisher: BackgroundDispatcher, backpressure: Backpressure) -> None:
        self._publisher = publisher
        self._backpressure = backpressure

    def kick(self, hint: Hint, project_id: ProjectId) -> None:
        """Publish the hint; see ports.Dispatcher."""
        self._publisher.kick_among(hint, self._backpressure.woken(project_id, low=hint.low))

    def close(self) -> None:
        """Publish the waiting hints, for at most two seconds."""
        self._publisher.close()


class Backpressure:
    """Accepts or refuses adds by a load that is at most one second old, without a query."""

    def __init__(self, view: LoadView, limits: Limits) -> None:
        self._view = view
        self._limits = limits
        self._load = Load()
        self._backlog = Backlog(limits.lag_s)
        self._lanes: Counter[LaneClass] = Counter()
        self._looking: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Start reading the load."""
        self._looking = asyncio.create_task(self._look())

    async def close(self) -> None:
        """Stop reading the load."""
        if self._looking:
            self._looking.cancel()

    def admit(self, scope: Scope, *, low: bool = False) -> None:
        """Check the limits for one add; `low`: of low priority. Errors: Overloaded."""
        try:
            admit(scope, self._load, self._limits, low=low)
        except Overloaded as error:
            telemetry.adds_refused.labels("server" if error.server_wide else "caller").inc()
            raise

    def woken(self, project_id: ProjectId, *, low: bool = False) -> int:
        """Count a woken lane. Returns the number of busy lanes of its class, this one included.

        Lanes that woke up since the last reading of the load are counted too.
        """
        self._lanes[project_id, low] += 1
        return self._lanes[project_id, low]

    async def _look(self) -> None:
        while True:
            try:
                load = await self._view.look(scope_events=self._limits.of_low().scope_events)
                self._load = self._backlog.follow(load, time.monotonic())
            except LedgerUnavailable as error:
                log.warning("load_unknown", error=error.reason)
            self._lanes = Counter(self._load.lanes)
            await asyncio.sleep(LOOK_EVERY_S)
