"""Metrics, with gauges read from the ledger; built at most once every few seconds."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from uuid import UUID

import structlog

from api.write_later import WriteLater
from pipeline import telemetry
from pipeline.accounting.balance import Balance, Totals
from pipeline.domain.events import FailureCode, Status
from pipeline.domain.lanes import GATHERING
from pipeline.domain.tenants import ProjectId
from pipeline.graph.outbox import GraphOutbox
from pipeline.lanes.queue_view import QueueView
from pipeline.ledger.failures import LedgerUnavailable

log = structlog.get_logger()

# Prometheus scrapes every 15 s or less often.
KEPT_S = 5.0
# Seconds after which a counted search is written, so that every process reads the same number.
WRITTEN_AFTER_S = 3.0
# Reasons that always have a value, 0 while no lane waits for them.
WAIT_REASONS = (
    GATHERING,
    FailureCode.LLM_UNAVAILABLE,
    FailureCode.LLM_REJECTED,
    FailureCode.STORE_UNAVAILABLE,
)


class Figures(WriteLater):
    """Cache of the metrics. One caller builds them while the others wait for it."""

    def __init__(
        self,
        balance: Balance,
        outbox: GraphOutbox,
        queue: QueueView,
        *,
        kept_s: float = KEPT_S,
        written_after_s: float = WRITTEN_AFTER_S,
    ) -> None:
        """Set the seconds that the metrics are kept, and after which searches are written."""
        super().__init__(written_after_s)
        self._balance = balance
        self._outbox = outbox
        self._queue = queue
        self._kept_s = kept_s
        self._one_at_a_time = asyncio.Lock()
        self._built_at = -math.inf
        self._exposition = b"", ""
        self._searches: Counter[UUID] = Counter()

    def searched(self, project_id: ProjectId) -> None:
        """Count a search.

        Counts are written after `written_after_s` seconds, before this process reads figures, and
        when it ends.
        """
        self._searches[project_id] += 1
        self.schedule()

    async def write_down(self) -> None:
        """Write the counts of searches. Errors: LedgerUnavailable.

        Counts that were not sent are kept; others may be written, so they are not written again.
        """
        if self._searches:
            searches, self._searches = self._searches, Counter()
            try:
                await self._balance.add_searches(searches)
            except LedgerUnavailable as error:
                if not error.may_have_committed:
                    self._searches.update(searches)
                raise

    async def write(self) -> None:
        """Write the counts, if the ledger answers."""
        try:
            await self.write_down()
        except LedgerUnavailable as error:
            log.warning("searches_not_written", error=error.reason)

    async def exposition(self) -> tuple[bytes, str]:
        """The metrics in Prometheus' text format, and their content type.

        Merging the files of all processes takes 0.1 to 0.4 s of CPU: it runs in a thread, and its
        text is kept.
        """
        async with self._one_at_a_time:
            if time.monotonic() - self._built_at >= self._kept_s:
                await self._refresh()
                self._exposition = await asyncio.to_thread(telemetry.exposition)
                self._built_at = time.monotonic()
            return self._exposition

    async def _refresh(self) -> None:
        """Update the gauges.

        If the ledger does not answer, they keep their values and `memlane_ledger_up` is 0.
        """
        try:
            await self.write_down()
            _show(await self._balance.totals())
            telemetry.graph_mirror_lag_seconds.set(await self._outbox.lag_s())
            telemetry.queue_dispatchable_seconds.set(await self._queue.dispatchable_s())
            waiting = await self._queue.waiting_s()
            for reason in {*WAIT_REASONS, *waiting}:
                telemetry.queue_waiting_seconds.labels(reason).set(waiting.get(reason, 0))
        except LedgerUnavailable as error:
            log.warning("figures_unknown", error=error.reason)
            telemetry.ledger_up.set(0)
        else:
            telemetry.ledger_up.set(1)


def _show(totals: Totals) -> None:
    telemetry.events_in_flight.labels(Status.PENDING).set(totals.pending)
    telemetry.events_in_flight.labels(Status.RUNNING).set(totals.running)
    telemetry.queue_oldest_seconds.set(totals.oldest_in_flight_s)
    for status in telemetry.LEDGER_STATUSES:
        telemetry.ledger_events.labels(status).set(getattr(totals, status))
    telemetry.ledger_balanced.set(totals.balanced)
