"""What one worker process has once: an event loop in a thread, services, and its leases.

Celery's pool threads hand their coroutine to the loop and wait. Threads because they are measured
right: gevent and eventlet lose acknowledgements with kombu's defaults, prefork costs 52 MB a slot.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import UUID, uuid4

import structlog
import uvloop
from sqlalchemy.exc import SQLAlchemyError

from pipeline import bootstrap
from pipeline.domain import Activation, Wake
from pipeline.ingest import Services, run_stage
from pipeline.ledger.lanes import Lanes
from pipeline.settings import Settings

log = structlog.get_logger()
T = TypeVar("T")


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

    def call_later(self, delay_s: float, what: Callable[[], None]) -> None:
        """Have it called in the loop; from anywhere, a signal handler too."""
        self._loop.call_soon_threadsafe(self._loop.call_later, delay_s, what)

    def turned(self) -> bool:
        """Whether the loop has got round to anything new since this was last asked."""
        turned = self._turned.is_set()
        self._turned.clear()
        self._loop.call_soon_threadsafe(self._turned.set)
        return turned

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Heartbeat:
    """Renews the leases of what this process works on, until it has to let go."""

    def __init__(self, lanes: Lanes, *, lease_s: float) -> None:
        self._lanes = lanes
        # Three beats a lease: two may be late or lost.
        self._interval_s = lease_s / 3
        self._held: dict[tuple[UUID, int], asyncio.Task[Any]] = {}
        self._ending = False

    @contextmanager
    def hold(self, activation: Activation) -> Iterator[None]:
        held, work = (activation.lane_id, activation.fence), asyncio.current_task()
        assert work is not None
        self._held[held] = work
        if self._ending:  # it was being claimed as the others had to let go
            work.cancel()
        try:
            yield
        finally:
            del self._held[held]

    def let_go(self) -> None:
        """Cancel the work under way, and what may still begin: its lanes are handed back."""
        self._ending = True
        for work in self._held.values():
            work.cancel()

    async def beat(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            if not self._held:
                continue
            try:
                await self._lanes.renew(list(self._held))
            except (SQLAlchemyError, OSError) as error:
                log.warning("heartbeat_missed", error=type(error).__name__)


class Runtime:
    def __init__(self, settings: Settings) -> None:
        self.owner = uuid4()
        self._settings = settings
        self._loop = LoopThread()
        self._stores = bootstrap.stores(settings)
        self._services: Services = bootstrap.services(settings, self._stores)
        self._leases = Heartbeat(self._services.ledger.lanes, lease_s=settings.lease_s)
        # Hints so far; the watchdog compares.
        self.taken = self.done = 0
        self._lock = threading.Lock()
        projectors = (self._services.projector, self._services.turn_projector)
        self._background = [
            self._loop.start(self._leases.beat()),
            *(self._loop.start(projector.run()) for projector in projectors if projector),
        ]

    def run_stage(self, wake: Wake) -> Wake | None:
        with self._lock:
            self.taken += 1
        try:
            return self._loop.run(
                run_stage(wake, owner=self.owner, services=self._services, leases=self._leases)
            )
        finally:
            with self._lock:
                self.done += 1

    def turned(self) -> bool:
        return self._loop.turned()

    def stop_within(self, seconds: float) -> None:
        """Let stages finish for so long, then have their lanes handed back."""
        self._loop.call_later(seconds, self._leases.let_go)

    def warm(self) -> None:
        """Load the models now, beside the first events, instead of inside one of them."""
        models = (self._settings.llm, self._settings.embedder)
        self._loop.start(bootstrap.warm(self._services.embedder, *models))

    def close(self) -> None:
        for task in self._background:
            task.cancel()
        self._loop.run(self._stores.close())
        self._loop.close()
