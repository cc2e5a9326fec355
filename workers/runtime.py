"""Runtime of a worker process: an event loop in a thread, services, and the leases of its lanes.

Celery's one thread takes a hint, begins its stage in the loop and takes the next: a stage that
waits for a model costs no thread, let alone a process. Measured beside a pool of 100 threads that
wait: 8.5 -> 7.0 ms of CPU an event, 600 -> 710 events/s of few scopes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import uuid4

import structlog
import uvloop

from pipeline import bootstrap
from pipeline.domain.lanes import Activation, Hold, Wake
from pipeline.ingest.runner import run_stage
from pipeline.ingest.services import Services
from pipeline.lanes.store import BEATS, Lanes, session_name
from pipeline.ledger.failures import LEDGER_FAILURES
from pipeline.settings import Settings
from workers.quarantine import Quarantine
from workers.watchdog import end_with

log = structlog.get_logger()
T = TypeVar("T")

# Between two tries to renew the lease of a lane that is locked.
RETRY_S = 0.2


class LoopThread:
    """One event loop for the life of the process: clients bound to it never meet a closed one."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._turned = threading.Event()
        self._turned.set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result, or what it raised; from any thread but the loop's own."""
        return self.start(work).result()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call_soon(self, what: Callable[..., None], *given: Any) -> None:
        """Have it called in the loop; from any thread."""
        self._loop.call_soon_threadsafe(what, *given)

    def call_later(self, delay_s: float, what: Callable[[], None]) -> None:
        """Have it called in the loop; from anywhere, a signal handler too."""
        self._loop.call_soon_threadsafe(self._loop.call_later, delay_s, what)

    def turned(self) -> bool:
        """True if the loop has run anything since the last call."""
        turned = self._turned.is_set()
        self._turned.clear()
        self._loop.call_soon_threadsafe(self._turned.set)
        return turned

    def running(self) -> str | None:
        """The name of the task that has the loop right now; from any thread."""
        task = asyncio.current_task(self._loop)
        return task.get_name() if task else None

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Heartbeat:
    """Renews the leases of what this process works on, until it has to let go."""

    def __init__(
        self, lanes: Lanes, *, lease_s: float, quarantine: Quarantine | None = None
    ) -> None:
        self._lanes = lanes
        self.alone = (quarantine or Quarantine()).alone
        self._interval_s = lease_s / BEATS
        self._held: dict[Hold, asyncio.Task[Any]] = {}
        self._ending = False

    @contextmanager
    def hold(self, activation: Activation) -> Iterator[None]:
        hold, work = activation.hold, asyncio.current_task()
        assert work is not None
        self._held[hold] = work
        if self._ending:  # it was being claimed as the others had to let go
            work.cancel()
        try:
            yield
        finally:
            del self._held[hold]

    def let_go(self) -> None:
        """Cancel the work under way, and what may still begin: its lanes are handed back."""
        self._ending = True
        for work in self._held.values():
            work.cancel()

    async def beat(self) -> None:
        """Renew all leases once an interval. A lane that was locked is tried again in between, so
        that it is renewed soon after the lock is released.
        """
        clock = asyncio.get_running_loop().time
        while True:
            next_beat = clock() + self._interval_s
            missing = await self._renew(self._held)
            while missing and clock() + RETRY_S < next_beat:
                await asyncio.sleep(RETRY_S)
                missing = await self._renew(missing & self._held.keys())
            await asyncio.sleep(next_beat - clock())

    async def _renew(self, holds: Collection[Hold]) -> set[Hold]:
        """Renew these leases. Returns those that were not renewed."""
        if not holds:
            return set()
        wanted = list(holds)
        try:
            async with asyncio.timeout(self._interval_s):
                return set(wanted) - await self._lanes.renew(wanted)
        except LEDGER_FAILURES as error:
            log.warning("heartbeat_missed", error=type(error).__name__)
            return set()


class Runtime:
    def __init__(self, settings: Settings, name: str) -> None:
        self.owner = uuid4()
        self._settings = settings
        self._loop = LoopThread()
        self._stores = bootstrap.stores(settings, name=session_name(self.owner, name))
        self._services: Services = bootstrap.services(settings, self._stores)
        quarantine = Quarantine(self._stand_aside)
        lanes = self._services.ledger.lanes
        self._leases = Heartbeat(lanes, lease_s=settings.lease_s, quarantine=quarantine)
        # Hints so far; the watchdog compares.
        self.taken = self.done = 0
        self._stages: set[asyncio.Task[None]] = set()
        # Those that have given their places up: suspects, which stand in a line of their own.
        self._aside: set[asyncio.Task[Any]] = set()
        # One less: the stage that takes the last place has begun when it is waited for.
        self._room = threading.Semaphore(settings.worker_concurrency - 1)
        projectors = (self._services.projector, self._services.turn_projector)
        self._background = [
            self._loop.start(self._leases.beat()),
            *(self._loop.start(projector.run()) for projector in projectors if projector),
        ]
        for task in self._background:
            task.add_done_callback(end_with)

    def begin(self, wake: Wake, then: Callable[[Wake], None]) -> None:
        """Begin a stage and return as soon as there is room for another, so that no hint is taken
        before it can run. `then` is called with the next hint, in the loop.
        """
        self.taken += 1
        self._loop.call_soon(self._begin, wake, then)
        self._room.acquire()

    def _begin(self, wake: Wake, then: Callable[[Wake], None]) -> None:
        stage = asyncio.create_task(self._stage(wake, then), name=str(wake.lane_id))
        self._stages.add(stage)  # the loop itself would forget it
        stage.add_done_callback(self._over)

    async def _stage(self, wake: Wake, then: Callable[[Wake], None]) -> None:
        following = await self._run(wake)
        # Between two stages the lane is queued as after any stage: a worker that dies here loses
        # nothing, the sweeper sends the hint.
        while following is not None and following.at_once:
            following = await self._run(following)
        if following is not None:
            then(following)

    async def _run(self, wake: Wake) -> Wake | None:
        return await run_stage(wake, owner=self.owner, services=self._services, leases=self._leases)

    def _over(self, stage: asyncio.Task[None]) -> None:
        self._stages.remove(stage)
        self.done += 1
        if stage in self._aside:
            self._aside.remove(stage)
        else:
            self._room.release()
        if not stage.cancelled() and (error := stage.exception()) is not None:
            log.error("stage_raised", lane_id=stage.get_name(), exc_info=error)

    def _stand_aside(self) -> None:
        stage = asyncio.current_task()
        assert stage is not None
        self._aside.add(stage)
        self._room.release()

    def turned(self) -> bool:
        return self._loop.turned()

    def running(self) -> str | None:
        """The lane whose stage has the loop right now, if it is a stage."""
        return self._loop.running()

    def stop_within(self, seconds: float) -> None:
        """Let stages finish for so long, then have their lanes handed back."""
        self._loop.call_later(seconds, self._leases.let_go)

    def warm(self) -> Future[None]:
        """Load the models now, beside the first events, instead of inside one of them."""
        models = (self._settings.llm, self._settings.embedder)
        return self._loop.start(bootstrap.warm(self._services.embedder, *models))

    def finish(self) -> None:
        """Wait for the stages under way; see `stop_within`."""
        self._loop.run(self._finished())

    async def _finished(self) -> None:
        if self._stages:
            await asyncio.wait(self._stages)

    def close(self) -> None:
        for task in self._background:
            task.cancel()
        self._loop.run(self._services.model.close())
        self._loop.run(self._stores.close())
        self._loop.close()
