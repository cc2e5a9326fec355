"""Publishing of hints, for the API, the workers and the sweeper."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from queue import Full, Queue
from typing import Any

import structlog
from celery import Celery
from kombu.exceptions import OperationalError

from pipeline import telemetry
from pipeline.domain.lanes import Wake
from pipeline.settings import Settings
from workers.app import make_app, task_name
from workers.queues import QUEUES, queue_of

log = structlog.get_logger()

# Hints beyond this are dropped: the sweeper finds their lanes, and memory stays bounded.
MOST_WAITING = 10_000
MARK = "memlane:epoch"
# A quarter of what a hint costs: declaring its queue each time, which workers do when they start,
# and describing its arguments to monitors, of which there are none.
BARE: Mapping[str, Any] = {"declare": (), "argsrepr": "", "kwargsrepr": ""}
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 2.0
Hint = tuple[Wake, str]


class CeleryDispatcher:
    """Publishes at once, on the caller's thread."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        connection = app.connection_for_write()
        # Out of reach, or there and refusing to write: Redis without memory, or a replica.
        errors = (*connection.connection_errors, *connection.channel_errors)
        self._away: tuple[type[Exception], ...] = (OperationalError, OSError, *errors)

    def publish(self, wake: Wake, queue: str) -> bool:
        """False where the broker did not take it: no loss, the ledger knows what is due."""
        try:
            hint = (str(wake.lane_id), wake.fence)
            self._app.send_task(task_name(wake.stage), args=hint, queue=queue, **BARE)
        except self._away as error:
            telemetry.kicks_failed.inc()
            log.warning("kick_failed", lane_id=str(wake.lane_id), error=type(error).__name__)
            return False
        return True

    def backlog(self) -> int | None:
        """Number of hints that wait in the broker, or None if it is out of reach."""
        backlogs = self.backlogs()
        return None if backlogs is None else sum(backlogs.values())

    def backlogs(self) -> Mapping[str, int] | None:
        """Number of hints in each queue, or None if the broker is out of reach."""
        try:
            with self._app.connection_for_write() as connection:
                channel = connection.default_channel
                # Declared as Celery declares them: the first process creates them.
                declared = [
                    channel.queue_declare(name, durable=True, auto_delete=False) for name in QUEUES
                ]
        except self._away:
            return None
        return {queue.queue: int(queue.message_count) for queue in declared}

    def forgot(self) -> bool:
        """True if the broker was wiped or replaced since the last call.

        The call leaves a mark in it. Only Redis has a place for one: elsewhere the answer is False.
        """
        try:
            with self._app.connection_for_write() as connection:
                if connection.transport.driver_type != "redis":
                    return False
                return bool(connection.default_channel.client.set(MARK, "1", nx=True))
        except self._away:
            return False


class BackgroundDispatcher:
    """Publishes from a thread of its own, again and again until the broker takes a hint.

    So neither an add nor a stage ever waits for the broker. Hints that a kill loses are the
    sweeper's.
    """

    def __init__(self, dispatcher: CeleryDispatcher) -> None:
        self._dispatcher = dispatcher
        self._waiting: Queue[Hint | None] = Queue(MOST_WAITING)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kicks", daemon=True)
        self._thread.start()

    def kick(self, wake: Wake, queue: str) -> None:
        try:
            self._waiting.put_nowait((wake, queue))
        except Full:
            telemetry.kicks_failed.inc()

    def kick_among(self, wake: Wake, busy_lanes: int) -> None:
        """Publish the hint into the queue of projects with about as many busy lanes."""
        self.kick(wake, queue_of(busy_lanes))

    def close(self, *, timeout_s: float = 2.0) -> None:
        """Publish the hints that wait, within the time given; the sweeper repeats the others."""
        with contextlib.suppress(Full):
            self._waiting.put(None, timeout=timeout_s)
        self._thread.join(timeout_s)
        self._closed.set()

    def _run(self) -> None:
        while (hint := self._waiting.get()) is not None:
            try:
                self._publish(hint)
            except Exception as error:
                telemetry.kicks_failed.inc()
                log.error("kick_crashed", exc_info=error)

    def _publish(self, hint: Hint) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._dispatcher.publish(*hint) and not self._closed.wait(pause_s):
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


def background_dispatcher(settings: Settings) -> BackgroundDispatcher:
    """The dispatcher of the API, which uses nothing else of the workers."""
    return BackgroundDispatcher(CeleryDispatcher(make_app(settings)))
