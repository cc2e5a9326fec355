"""The sweeper: `python -m workers.sweeper [--ready-file PATH]`. Repairs what workers left behind.

Each tick queues the lanes that are due (an expired lease, a lost hint, the end of a wait) and
deletes what has passed its retention time; jobs beside the ticks write stale vectors. Several
sweepers may run: rows are locked with SKIP LOCKED, and every repair is idempotent.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog
import uvloop

from pipeline import bootstrap, collector, startup, telemetry
from pipeline.cpu_thread import share_gil
from pipeline.curator.store import RunLimits
from pipeline.domain.errors import StoreUnavailable
from pipeline.domain.events import FailureCode
from pipeline.domain.lanes import LaneClass
from pipeline.events.retention import Retention
from pipeline.lanes.load import LoadView
from pipeline.stores import Ledger
from pipeline.summaries.store import DueSummary
from pipeline.watchdog import Watchdog
from workers import sweeper_jobs
from workers.app import make_app
from workers.dispatch import BackgroundDispatcher, CeleryDispatcher, QuietHints
from workers.fair_queues import queue_of
from workers.probes import probes_of
from workers.resend_hints import ResendHints

log = structlog.get_logger()

# Maximum number of a project's runs of the curator that are open, by its schedule, and that have
# a hint or a worker.
RUNS_OF_A_PROJECT = 20
# Maximum number of expired conflicts that a tick closes.
EXPIRED_A_TICK = 5_000
# Maximum number of summaries published in one tick, and the seconds after which an unfinished
# one is published again: longer than the calls of a model and its fallbacks take.
SUMMARIES_A_TICK, SUMMARY_S = 100, 300.0
# Numbers of lanes that the first and the largest step after an outage resume.
FIRST_RAMP, LONGEST_RAMP = 10, 200
# Time limit of each part of a tick: longer than those of a statement and of the broker.
PART_S = 20.0
# Time limit of the deletion of one kind of rows: one that always reaches it leaves time for others.
DELETION_S = 12.0
Deletion = Callable[[], Awaitable[int]]
# Codes of lanes that wait for a model.
MODEL_WAITS = (FailureCode.LLM_UNAVAILABLE, FailureCode.LLM_REJECTED)
PING_S = 2.0
# Pause of a deletion after a run that found no rows. A look for erased events reads every project.
DELETE_EVERY_S, ERASED_EVERY_S = 10.0, 600.0


@dataclass(slots=True)
class Ramp:
    """Number of parked lanes that the next tick resumes; 0 unless an outage has just ended."""

    size: int = 0

    def arm(self) -> None:
        """Start with a small number, because there is an outage."""
        self.size = FIRST_RAMP

    def rise(self, released: int) -> None:
        """Double the number after a full release; 0 once fewer lanes than that were parked."""
        self.size = min(self.size * 2, LONGEST_RAMP) if released == self.size else 0


@dataclass(slots=True)
class PausingDeletion:
    """Deletion of one kind of rows, which pauses after a run that found none."""

    delete: Deletion
    pause_s: float
    due_at: float = 0.0

    async def run(self) -> int:
        """Delete some rows and return their number; 0 during a pause."""
        if time.monotonic() < self.due_at:
            return 0
        number = await self.delete()
        if not number:
            self.due_at = time.monotonic() + self.pause_s
        return number


def deletions_of(retention: Retention) -> Mapping[str, PausingDeletion]:
    """The deletions of rows whose retention time is over, by kind."""
    frequent = {
        "keys": retention.forget_keys,
        "outputs": retention.drop_outputs,
        "answers": retention.forget_answers,
        "jobs": retention.forget_profile_jobs,
        "profile_values": retention.forget_profile_values,
        "past_states": retention.forget_past_states,
        "runs": retention.forget_private_runs,
        "audit": retention.forget_audit,
        "samples": retention.forget_samples,
        "usage": retention.forget_usage,
    }
    return {
        **{name: PausingDeletion(delete, DELETE_EVERY_S) for name, delete in frequent.items()},
        "erased": PausingDeletion(retention.forget_erased, ERASED_EVERY_S),
    }


class Sweeper:
    """The work of one tick: parked lanes, due lanes, due summaries, expirations, retention."""

    def __init__(
        self,
        ledger: Ledger,
        dispatcher: CeleryDispatcher,
        retention: Retention,
        ping_store: Callable[[], Awaitable[None]],
        run_limits: RunLimits,
    ) -> None:
        """`ping_store`: raises StoreUnavailable if the vector store does not answer.

        `run_limits`: those of the curator's scheduled runs.
        """
        self._lanes = ledger.due_lanes
        self._summaries = ledger.summaries
        self._circuits = ledger.circuits
        self._curator, self._run_limits = ledger.curator, run_limits
        self._conflicts = ledger.conflicts
        self._load = LoadView(ledger.engine)
        self._dispatcher = dispatcher
        self._hints = ResendHints(ledger, self._load, dispatcher)
        self._deletions = deletions_of(retention)
        self._ping_store = ping_store
        # Armed at the start: a restart with a corrected key may come after the provider's answer.
        self._models = {code: Ramp(FIRST_RAMP) for code in MODEL_WAITS}
        self._stores = Ramp(FIRST_RAMP)
        self.ticks = 0

    async def tick(self) -> None:
        """Run each part on its own, so that a failed one does not stop the others."""
        for part in (
            *(self.resume, self.restore, self.resend_hints),
            *(self.curate, self.summarize, self.close_conflicts, self.let_go),
        ):
            await sweeper_jobs.attempt(part, limit_s=PART_S)
        self.ticks += 1
        telemetry.sweeper_ticks.inc()

    async def resume(self) -> None:
        """Resume lanes that an outage of a provider parked.

        During the outage, one lane for each due probe; after it a growing number per tick, so that
        the provider does not get all calls at the same time.
        """
        down, due = await self._circuits.down()
        if down:
            for code, ramp in self._models.items():
                ramp.arm()
                await self._lanes.release(code, limit=due)
        else:
            for code, ramp in self._models.items():
                await self._release(ramp, code)

    async def restore(self) -> None:
        """Resume lanes that an outage of the vector store parked.

        After the outage, a growing number is resumed in each tick.
        """
        try:
            async with asyncio.timeout(PING_S):
                await self._ping_store()
        except (StoreUnavailable, TimeoutError):
            self._stores.arm()
        else:
            await self._release(self._stores, FailureCode.STORE_UNAVAILABLE)

    async def _release(self, ramp: Ramp, code: FailureCode) -> None:
        """Resume the next step of lanes that wait with this code."""
        if ramp.size:
            released = await self._lanes.release(code, limit=ramp.size)
            log.info("lanes_resumed", count=released, code=code)
            ramp.rise(released)

    async def resend_hints(self) -> None:
        """Publish again the hints of lanes that are due."""
        await self._hints.resend()

    async def summarize(self) -> None:
        """Publish the tasks of due summaries."""
        due = await self._summaries.claim_due(limit=SUMMARIES_A_TICK, lease_s=SUMMARY_S)
        if due:
            busy = await self._load.lanes()
            await asyncio.to_thread(self._publish_summaries, due, busy)

    def _publish_summaries(self, due: Sequence[DueSummary], busy: Mapping[LaneClass, int]) -> None:
        for summary in due:
            queue = queue_of(busy.get((summary.project_id, False), 0))
            if not self._dispatcher.publish_summary(summary.lane_id, queue):
                return

    async def curate(self) -> None:
        """Create the curator's scheduled runs, and publish hints of the runs that are due."""
        if scheduled := await self._curator.schedule(self._run_limits, limit=RUNS_OF_A_PROJECT):
            log.info("curator_runs_scheduled", count=scheduled)
        for hint in await self._curator.sweep(limit=RUNS_OF_A_PROJECT):
            if not await asyncio.to_thread(self._dispatcher.publish_run, hint):
                return

    async def close_conflicts(self) -> None:
        """Mark the conflicts whose statements have expired as resolved."""
        if closed := await self._conflicts.close_expired(limit=EXPIRED_A_TICK):
            log.info("conflicts_expired", count=closed)

    async def let_go(self) -> None:
        """Delete the rows whose retention time is over, each kind on its own."""
        counts = dict.fromkeys(self._deletions, 0)
        for name, deletion in self._deletions.items():

            async def delete(name: str = name, forget: Deletion = deletion.run) -> None:
                counts[name] = await forget()

            delete.__name__ = f"delete_{name}"
            await sweeper_jobs.attempt(delete, limit_s=DELETION_S)
        if any(counts.values()):
            log.info("retention_over", **counts)


@dataclass(slots=True)
class Ticks:
    """The sweeper as the watchdog sees it: it must tick, and takes no hints."""

    sweeper: Sweeper
    taken: int = 0
    done: int = 0
    _seen: int = -1

    def turned(self) -> bool:
        """True if a tick has ended since the last call."""
        before, self._seen = self._seen, self.sweeper.ticks
        return self._seen != before

    def running(self) -> str | None:
        """None: the sweeper runs no stages."""
        return None


async def sweep_until(stopped: asyncio.Event, sweeper: Sweeper, *, every_s: float) -> None:
    """Run a tick every `every_s` seconds until `stopped` is set."""
    while not stopped.is_set():
        await sweeper.tick()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                await stopped.wait()


async def run(ready_file: Path | None) -> None:
    """Run the sweeper until SIGTERM or SIGINT. `ready_file`: created once it is about to start."""
    configured = startup.load()
    share_gil()
    telemetry.configure_logs(configured.log_level, process="sweeper")
    bootstrap.trace(configured, process="sweeper")
    stores = bootstrap.stores(configured)
    dispatcher = CeleryDispatcher(make_app(configured))
    background = BackgroundDispatcher(dispatcher)
    sweeper = Sweeper(
        stores.ledger,
        dispatcher,
        bootstrap.build_retention(configured, stores.ledger),
        stores.vectors.ping,
        RunLimits(configured.curator_suggestions, configured.curator_tokens),
    )
    stopped = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    collector.spare_loaded()
    if ready_file:
        ready_file.touch()  # noqa: ASYNC240  once, before anything else runs
    # It ends the process if no tick ends within the time that one can take.
    longest_s = max(configured.stuck_s, 4 * PART_S)
    watchdog = Watchdog(Ticks(sweeper), lambda: None, most=1, stuck_s=longest_s)
    watchdog.start()
    probes = probes_of(configured, lambda: sweeper.ticks > 0)
    async with sweeper_jobs.under_way(configured, stores, QuietHints(background)):
        await sweep_until(stopped, sweeper, every_s=configured.sweep_s)
    if probes:
        await asyncio.to_thread(probes.close)
    watchdog.close()
    await asyncio.to_thread(background.close)
    await stores.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="workers.sweeper", description=__doc__)
    parser.add_argument("--ready-file", type=Path)
    parser.add_argument("--start-file", type=Path, help="the process waits until it exists")
    arguments = parser.parse_args()
    startup.wait_for(arguments.start_file)
    uvloop.run(run(arguments.ready_file))
