"""Runtime of a worker process: an event loop in a thread, the services, and its lanes' leases.

Celery's single thread takes a hint, starts its stage in the loop and takes the next hint, so a
stage that waits for a model costs no thread. Compared with a pool of 100 threads: CPU of an event
8.5 -> 7.0 ms, 600 -> 710 events/s with few scopes.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar
from uuid import UUID, uuid4

import structlog
import uvloop

from pipeline import bootstrap
from pipeline.curator import service as curator
from pipeline.curator.store import RunHint
from pipeline.domain.lanes import Activation, Hint, Hold
from pipeline.ingest.runner import run_stage
from pipeline.ingest.services import Services
from pipeline.lanes.leases import BEATS, LaneLeases, session_name
from pipeline.lanes.load import LoadView
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.loop_watch import LoopWatch
from pipeline.settings import Settings
from pipeline.summaries.service import Summarizer
from pipeline.watchdog import end_with
from workers.busy_lanes import BusyLanes
from workers.quarantine import Quarantine

log = structlog.get_logger()
T = TypeVar("T")

# Seconds between attempts to renew the lease of a locked lane.
RETRY_S = 0.2
# Share of the places for low priority that is used beside stages of normal priority, and the
# seconds without such stages after which all of them are used.
LOW_BESIDE, QUIET_S = 0.1, 2.0


class LoopThread:
    """One event loop for the life of the process, so that clients never meet a closed loop."""

    def __init__(self, *, slow_s: float = 1.0) -> None:
        """`slow_s`: time after which a blocked loop is logged."""
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loop", daemon=True)
        self._thread.start()
        self.watch = LoopWatch(self._loop, slow_s=slow_s)
        self.watch.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and return its result; from any other thread.

        Errors: those of the coroutine.
        """
        return self.start(work).result()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the loop; from any thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call_soon(self, what: Callable[..., None], *given: Any) -> None:
        """Call a function in the loop; from any thread."""
        self._loop.call_soon_threadsafe(what, *given)

    def call_later(self, delay_s: float, what: Callable[[], None]) -> None:
        """Call a function in the loop after a delay; from any thread or signal handler."""
        self._loop.call_soon_threadsafe(self._loop.call_later, delay_s, what)

    def close(self) -> None:
        """Stop the loop and its thread."""
        self.watch.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Heartbeat:
    """Renews the leases of the lanes that this process works on."""

    def __init__(
        self,
        leases: LaneLeases,
        *,
        lease_s: float,
        quarantine: Quarantine | None = None,
        blocked_s: Callable[[asyncio.Task[Any]], float] = lambda task: 0.0,
    ) -> None:
        """`blocked_s`: longest time for which a task has blocked the loop."""
        self._leases = leases
        self._blocked_s = blocked_s
        self.alone = (quarantine or Quarantine()).alone
        self._interval_s = lease_s / BEATS
        self._tasks: dict[Hold, asyncio.Task[Any]] = {}
        self._ending = False

    @contextmanager
    def keep_renewed(self, activation: Activation) -> Iterator[None]:
        """Renew the lane's lease for as long as the block runs."""
        hold, work = activation.hold, asyncio.current_task()
        assert work is not None
        self._tasks[hold] = work
        if self._ending:  # the lane was claimed while `let_go` cancelled the others
            work.cancel()
        try:
            yield
        finally:
            del self._tasks[hold]

    def blocked(self) -> bool:
        """True if the current task blocked the loop for so long that no lease was renewed."""
        task = asyncio.current_task()
        return task is not None and self._blocked_s(task) >= self._interval_s

    def let_go(self) -> None:
        """Cancel all stages, also those that start later; each one releases its lane."""
        self._ending = True
        for work in self._tasks.values():
            work.cancel()

    async def beat(self) -> None:
        """Renew all leases once per interval, until cancelled.

        A lane that was locked is retried within the interval, so that its lease is renewed soon
        after the lock is released.
        """
        clock = asyncio.get_running_loop().time
        while True:
            next_beat = clock() + self._interval_s
            missing = await self._renew(self._tasks)
            while missing and clock() + RETRY_S < next_beat:
                await asyncio.sleep(RETRY_S)
                missing = await self._renew(missing & self._tasks.keys())
            await asyncio.sleep(next_beat - clock())

    async def _renew(self, holds: Collection[Hold]) -> set[Hold]:
        """Renew these leases. Returns those that were not renewed.

        After an error of the ledger none are returned: the next beat renews them.
        """
        if not holds:
            return set()
        wanted = list(holds)
        try:
            async with asyncio.timeout(self._interval_s):
                return set(wanted) - await self._leases.renew(wanted)
        except (LedgerUnavailable, TimeoutError) as error:
            log.warning("heartbeat_missed", error=type(error).__name__)
            return set()


class Runtime:
    """The services of a worker process, and the stages that it runs."""

    def __init__(self, settings: Settings, name: str) -> None:
        """`name`: the worker's name, which its database sessions carry."""
        self.owner = uuid4()
        self._settings = settings
        self._loop = LoopThread(slow_s=settings.loop_slow_s)
        self._stores = bootstrap.stores(settings, name=session_name(self.owner, name))
        self._services: Services = bootstrap.services(settings, self._stores)
        ledger = self._stores.ledger
        self._summarizer = Summarizer(ledger.summaries, ledger.costs, self._services.model)
        quarantine = Quarantine(self._stand_aside)
        self._leases = Heartbeat(
            ledger.leases,
            lease_s=settings.lease_s,
            quarantine=quarantine,
            blocked_s=self._loop.watch.blocked_s,
        )
        self._busy_lanes = BusyLanes(LoadView(ledger.engine))
        # Number of hints taken and done, for the watchdog.
        self.taken = self.done = 0
        self._stages: set[asyncio.Task[None]] = set()
        # Tasks that hold no lane: runs of the curator, and summaries.
        self._runs: set[asyncio.Task[None]] = set()
        # Load of the local embedder, from the first stage on.
        self._warming: asyncio.Task[None] | None = None
        # Suspects in quarantine: they do not count towards `stages_at_once`.
        self._aside: set[asyncio.Task[Any]] = set()
        # Maximum number of stages of low priority, and the numbers of those taken and done.
        self._low_places = settings.low_places
        self._low_taken = self._low_done = 0
        # Time at which a stage of normal priority last began or ended.
        self._normal_at = -math.inf
        # One less, because `begin` starts a stage before it waits for a free place.
        self._room = threading.Semaphore(settings.stages_at_once - 1)
        projectors = (self._services.projector, self._services.turn_projector)
        self._background = [
            self._loop.start(self._leases.beat()),
            *(self._loop.start(projector.run()) for projector in projectors if projector),
        ]
        for task in self._background:
            task.add_done_callback(end_with)

    def begin_run(self, hint: RunHint) -> None:
        """Continue a run of the curator, and return once a stage or another run may start."""
        services = self._services
        run = partial(curator.run, ledger=self._stores.ledger, model=services.model)
        self._begin_apart(hint.run_id, partial(run, hint, embedder=services.embedder.name))

    def summarize(self, lane_id: UUID) -> None:
        """Start to make a scope's summary, and return once a stage or another run may start."""
        self._begin_apart(lane_id, partial(self._summarize, lane_id))

    def _begin_apart(self, key: UUID, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start work that holds no lane."""
        self.taken += 1
        self._loop.call_soon(self._start_apart, key, work)
        self._room.acquire()

    def _start_apart(self, key: UUID, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        run = asyncio.create_task(work(), name=str(key))
        self._runs.add(run)
        run.add_done_callback(self._runs.discard)
        self._watch(run)

    async def _summarize(self, lane_id: UUID) -> None:
        """Make a summary. After a cancellation or an error it is due again."""
        try:
            await self._summarizer.summarize(lane_id)
        except LedgerUnavailable as error:
            log.warning("summary_failed", lane_id=str(lane_id), code=type(error).__name__)

    def begin(self, hint: Hint, then: Callable[[Hint], None]) -> None:
        """Start a stage, and return once another one may start.

        So no hint is taken before its stage can run. `then` is called in the loop with the lane's
        next hint, if any.
        """
        self.taken += 1
        if hint.low:
            self._low_taken += 1
        else:
            self._normal_at = time.monotonic()
        self._loop.call_soon(self._begin, hint, then)
        self._room.acquire()

    def queue_for(self, following: Hint, queue: str) -> str:
        """The queue of a lane's next hint, in the loop; `queue`: that of the last one."""
        return self._busy_lanes.queue_for(following, queue)

    def low_fits(self) -> bool:
        """True if another stage of low priority may start.

        Beside stages of normal priority, and for QUIET_S after them, they have few places: each one
        needs processor time that the others would wait for.
        """
        low = self._low_taken - self._low_done
        alone = self.taken - self.done == low and time.monotonic() - self._normal_at > QUIET_S
        return low < (self._low_places if alone else math.ceil(self._low_places * LOW_BESIDE))

    def _begin(self, hint: Hint, then: Callable[[Hint], None]) -> None:
        if self._warming is None:  # while the model extracts facts
            self._warming = asyncio.create_task(bootstrap.warm_embedder(self._stores.embedder))
        stage = asyncio.create_task(self._stage(hint, then), name=str(hint.lane_id))
        stage.add_done_callback(self._low_over if hint.low else self._normal_over)
        self._watch(stage)

    def _low_over(self, _: asyncio.Task[None]) -> None:
        self._low_done += 1

    def _normal_over(self, _: asyncio.Task[None]) -> None:
        self._normal_at = time.monotonic()

    def _watch(self, stage: asyncio.Task[None]) -> None:
        self._stages.add(stage)  # the loop keeps only a weak reference
        stage.add_done_callback(self._over)

    async def _stage(self, hint: Hint, then: Callable[[Hint], None]) -> None:
        """Run the stage, and further ones of the lane that follow at once."""
        following = await self._run(hint)
        # Between two stages the lane is queued, as after any stage: if the worker dies here, the
        # sweeper publishes the hint.
        while following is not None and following.at_once:
            following = await self._run(following)
        if following is not None:
            then(await self._with_priority(following))

    async def _with_priority(self, hint: Hint) -> Hint:
        """The hint with the lane's present priority: an add may have raised it during the stage.

        An add after this finds the lane queued, and publishes a hint of its own.
        """
        if not hint.low:
            return hint
        try:
            return replace(hint, low=await self._services.ledger.lanes.is_low(hint.lane_id))
        except LedgerUnavailable:  # the sweeper reads the priority again
            return hint

    async def _run(self, hint: Hint) -> Hint | None:
        return await run_stage(hint, owner=self.owner, services=self._services, leases=self._leases)

    def _over(self, stage: asyncio.Task[None]) -> None:
        """Release the place of a stage that has ended, and log its exception."""
        self._stages.remove(stage)
        self.done += 1
        if stage in self._aside:
            self._aside.remove(stage)
        else:
            self._room.release()
        if not stage.cancelled() and (error := stage.exception()) is not None:
            log.error("stage_raised", lane_id=stage.get_name(), exc_info=error)

    def _stand_aside(self) -> None:
        """Release the place of the current stage while it waits in quarantine."""
        stage = asyncio.current_task()
        assert stage is not None
        self._aside.add(stage)
        self._room.release()

    def turned(self) -> bool:
        """True if the event loop has made progress since the last call."""
        return self._loop.watch.turned()

    def running(self) -> str | None:
        """Id of the lane whose stage blocks the loop at this moment, if any."""
        return self._loop.watch.running()

    def stop_within(self, seconds: float) -> None:
        """Let running stages continue for `seconds`, then cancel them and release their lanes.

        Runs of the curator and summaries are cancelled at once: another worker continues them.
        """
        # Logged in the loop: a signal handler may interrupt another line.
        self._loop.call_later(0, partial(log.info, "worker_stopping", stop_s=seconds))
        self._loop.call_later(0, self._stop_runs)
        self._loop.call_later(seconds, self._leases.let_go)

    def _stop_runs(self) -> None:
        for run in self._runs:
            run.cancel()

    def warm(self) -> Future[None]:
        """Start to load LiteLLM, if it is used, so that the first event does not wait for it."""
        models = (*self._settings.llm.chain, self._settings.embedder)
        self._background.append(self._loop.start(bootstrap.warm_used_embedder(self._stores)))
        return self._loop.start(bootstrap.warm(*models))

    def finish(self) -> None:
        """Wait for the running stages to end; see `stop_within`."""
        self._loop.run(self._finished())

    async def _finished(self) -> None:
        if self._stages:
            await asyncio.wait(self._stages)

    def close(self) -> None:
        """Cancel the background tasks, close all connections and stop the loop."""
        for task in self._background:
            task.cancel()
        self._loop.run(self._services.model.close())
        self._loop.run(self._stores.close())
        self._loop.close()
