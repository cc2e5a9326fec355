"""The sweeper: `python -m workers.sweeper [--ready-file PATH]`. Puts right what got stuck.

Each tick it queues lanes whose time is up (a dead worker's lease, a lost hint, a wait that is
over) and deletes what is kept for a time only; beside the ticks its chores write stale vectors.
Any number may run: rows are taken with SKIP LOCKED, and every repair is idempotent.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

import structlog
import uvloop

from pipeline import bootstrap, settings, telemetry
from pipeline.domain.errors import StoreUnavailable
from pipeline.domain.events import FailureCode
from pipeline.events.retention import Retention
from pipeline.lanes.load import LoadView
from pipeline.lanes.store import Swept
from pipeline.stores import Ledger
from workers import sweeper_jobs
from workers.app import make_app
from workers.dispatch import CeleryDispatcher
from workers.queues import queue_of
from workers.watchdog import Watchdog

log = structlog.get_logger()

# One tick's share, a second of publishing; the rest is due at the next one.
LANES_A_TICK = 1_000
# A queue this deep explains a late hint: it counts as lost only after PATIENCE_S.
DEEP, PATIENCE_S = 100, 60.0
FIRST_RAMP, LONGEST_RAMP = 10, 200
# One part of a tick at most: more than a statement's limit and the broker's.
PART_S = 20.0
PING_S = 2.0


@dataclass(slots=True)
class Ramp:
    """Number of parked lanes that the next tick resumes; 0 unless an outage has just ended."""

    size: int = 0

    def arm(self) -> None:
        self.size = FIRST_RAMP

    def rise(self, released: int) -> None:
        self.size = min(self.size * 2, LONGEST_RAMP) if released == self.size else 0


class Sweeper:
    def __init__(
        self,
        ledger: Ledger,
        dispatcher: CeleryDispatcher,
        retention: Retention,
        ping_store: Callable[[], Awaitable[None]],
    ) -> None:
        self._now = ledger.now
        self._lanes = ledger.lanes
        self._circuits = ledger.circuits
        self._load = LoadView(ledger.engine)
        self._dispatcher = dispatcher
        self._retention = retention
        # True while the broker may have lost hints.
        self._doubt = False
        # When the broker answered again; hints from before that are still to be doubted.
        self._back_at: datetime | None = None
        self._ping_store = ping_store
        self._models, self._stores = Ramp(), Ramp()
        self.ticks = 0

    async def tick(self) -> None:
        """Each part by itself: trouble with the broker stops only what needs the broker."""
        for part in (self.resume, self.restore, self.requeue, self.let_go):
            await sweeper_jobs.attempt(part, limit_s=PART_S)
        self.ticks += 1

    async def resume(self) -> None:
        """Lanes parked by a provider's outage: one at a time to probe it, and once it is back more
        and more of them, so that it is not met by all at once.
        """
        down, due = await self._circuits.down()
        if down:
            self._models.arm()
            await self._lanes.release(FailureCode.LLM_UNAVAILABLE, limit=due)
        else:
            await self._release(self._models, FailureCode.LLM_UNAVAILABLE)

    async def restore(self) -> None:
        """Lanes parked by an outage of the vector store: more and more of them once it answers."""
        try:
            async with asyncio.timeout(PING_S):
                await self._ping_store()
        except (StoreUnavailable, TimeoutError):
            self._stores.arm()
        else:
            await self._release(self._stores, FailureCode.STORE_UNAVAILABLE)

    async def _release(self, ramp: Ramp, code: FailureCode) -> None:
        if ramp.size:
            released = await self._lanes.release(code, limit=ramp.size)
            log.info("lanes_resumed", count=released, code=code)
            ramp.rise(released)

    async def requeue(self) -> None:
        """Queue what is due again. While the broker is away nothing is touched; once it is back, or
        was wiped, every queued lane gets a new hint: the old one may be lost.
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
        if self._doubt:
            self._back_at, self._doubt = await self._now(), False
        if self._back_at:
            doubted = await self._lanes.doubt_hints(
                told_before=self._back_at, patience_s=PATIENCE_S, limit=LANES_A_TICK
            )
            if doubted < LANES_A_TICK:
                self._back_at = None
        deep = {queue for queue, hints in backlogs.items() if hints >= DEEP}
        busy = await self._load.lanes()
        patient = [project_id for project_id, lanes in busy.items() if queue_of(lanes) in deep]
        swept = await self._lanes.sweep(limit=LANES_A_TICK, patient=patient, patience_s=PATIENCE_S)
        if swept:
            await asyncio.to_thread(self._publish, swept, busy)

    def _publish(self, swept: Sequence[Swept], busy: Mapping[UUID, int]) -> None:
        for lane in swept:
            wake, queue = lane.wake, queue_of(busy.get(lane.project_id, 0))
            telemetry.swept.labels(lane.was).inc()
            log.info("lane_swept", lane_id=str(wake.lane_id), was=lane.was, stage=wake.stage)
            if not self._dispatcher.publish(wake, queue):
                self._doubt = True
                return

    async def let_go(self) -> None:
        keys, outputs = await self._retention.forget_keys(), await self._retention.drop_outputs()
        if keys or outputs:
            log.info("retention_over", keys=keys, outputs=outputs)


@dataclass(slots=True)
class Ticks:
    """The sweeper as the watchdog sees it: it has to tick, and takes no hints."""

    sweeper: Sweeper
    taken: int = 0
    done: int = 0
    _seen: int = -1

    def turned(self) -> bool:
        before, self._seen = self._seen, self.sweeper.ticks
        return self._seen != before

    def running(self) -> str | None:
        """No stage of a lane."""
        return None


def watchdog_of(sweeper: Sweeper, *, stuck_s: float) -> Watchdog:
    """Ends the process once no tick has come to an end for longer than one can take."""
    longest = max(stuck_s, 4 * PART_S)
    return Watchdog(Ticks(sweeper), lambda: None, most=1, stuck_s=longest)


async def sweep_until(stopped: asyncio.Event, sweeper: Sweeper, *, every_s: float) -> None:
    while not stopped.is_set():
        await sweeper.tick()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                await stopped.wait()


async def run(ready_file: Path | None) -> None:
    configured = settings.load()
    telemetry.configure_logs(configured.log_level, process="sweeper")
    stores = bootstrap.stores(configured)
    sweeper = Sweeper(
        stores.ledger,
        CeleryDispatcher(make_app(configured)),
        bootstrap.build_retention(configured, stores.ledger),
        stores.vectors.ping,
    )
    stopped = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    if ready_file:
        ready_file.touch()  # noqa: ASYNC240  once, before anything else runs
    watchdog = watchdog_of(sweeper, stuck_s=configured.stuck_s)
    watchdog.start()
    async with sweeper_jobs.under_way(configured, stores):
        await sweep_until(stopped, sweeper, every_s=configured.sweep_s)
    watchdog.close()
    await stores.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="workers.sweeper", description=__doc__)
    parser.add_argument("--ready-file", type=Path)
    uvloop.run(run(parser.parse_args().ready_file))
