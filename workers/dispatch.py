"""Publisher of hints, for the API, the workers and the sweeper."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from queue import Full, Queue
from typing import Any
from uuid import UUID

import structlog
from celery import Celery
from kombu.exceptions import OperationalError

from pipeline import telemetry
from pipeline.curator.store import RunHint
from pipeline.domain.lanes import Hint
from pipeline.domain.tenants import ProjectId
from pipeline.settings import Settings
from workers.app import CURATE, SUMMARIZE, make_app, task_name
from workers.fair_queues import QUEUES, queue_of

log = structlog.get_logger()

# Maximum number of hints in memory; further ones are dropped, and the sweeper finds their lanes.
MOST_WAITING = 10_000
MARK = "memlane:epoch"
# Saves a quarter of a hint's cost: the queue is not declared each time (workers do it at start),
# and the arguments are not described for monitors, because there are none.
BARE: Mapping[str, Any] = {"declare": (), "argsrepr": "", "kwargsrepr": ""}
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 2.0
# A hint, and the name of the queue that it goes into.
Routed = tuple[Hint, str]


class CeleryDispatcher:
    """Publisher that sends each hint at once, on the caller's thread."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        connection = app.connection_for_write()
        # Not reachable, or refusing writes: out of memory, or a replica of Redis.
        errors = (*connection.connection_errors, *connection.channel_errors)
        self._away: tuple[type[Exception], ...] = (OperationalError, OSError, *errors)

    def publish(self, hint: Hint, queue: str) -> bool:
        """Publish a hint. False if the broker did not accept it; the sweeper finds its lane."""
        return self._send(task_name(hint.stage), (str(hint.lane_id), hint.fence), queue)

    def publish_run(self, hint: RunHint) -> bool:
        """Publish a hint for a run of the curator. False as for `publish`."""
        return self._send(CURATE, (str(hint.run_id), hint.fence), QUEUES[0])

    def publish_summary(self, lane_id: UUID, queue: str) -> bool:
        """Publish the task of a due summary. False as for `publish`."""
        return self._send(SUMMARIZE, (str(lane_id),), queue)

    def _send(self, task: str, arguments: tuple[str | int, ...], queue: str) -> bool:
        try:
            self._app.send_task(task, args=arguments, queue=queue, **BARE)
        except self._away as error:
            telemetry.kicks_failed.inc()
            log.warning("kick_failed", id=arguments[0], error=type(error).__name__)
            return False
        return True

    def backlog(self) -> int | None:
        """Number of hints that wait in the broker, or None if it does not answer."""
        backlogs = self.backlogs()
        return None if backlogs is None else sum(backlogs.values())

    def backlogs(self) -> Mapping[str, int] | None:
        """Number of waiting hints by queue, or None if the broker does not answer."""
        try:
            with self._app.connection_for_write() as connection:
                channel = connection.default_channel
                # The same arguments as Celery's: the first process to declare a queue creates it.
                declared = [
                    channel.queue_declare(name, durable=True, auto_delete=False) for name in QUEUES
                ]
        except self._away:
            return None
        return {queue.queue: int(queue.message_count) for queue in declared}

    def forgot(self) -> bool:
        """True if the broker was wiped or replaced since the last call.

        The call leaves a mark in the broker and checks if it was there. RabbitMQ loses it, as it
        loses the hints, when it restarts.
        """
        try:
            with self._app.connection_for_write() as connection:
                return bool(connection.default_channel.leave_mark(MARK))
        except self._away:
            return False


class BackgroundDispatcher:
    """Publisher with its own thread, which retries until the broker accepts a hint.

    So neither an add nor a stage waits for the broker. The sweeper finds the lanes of hints that
    are lost when the process is killed.
    """

    def __init__(self, dispatcher: CeleryDispatcher) -> None:
        self._dispatcher = dispatcher
        self._waiting: Queue[Routed | None] = Queue(MOST_WAITING)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kicks", daemon=True)
        self._thread.start()

    def kick(self, hint: Hint, queue: str) -> None:
        """Queue a hint for publishing. Never blocks; if MOST_WAITING hints wait, it is dropped."""
        try:
            self._waiting.put_nowait((hint, queue))
        except Full:
            telemetry.kicks_failed.inc()

    def kick_among(self, hint: Hint, busy_lanes: int) -> None:
        """Publish a hint into the queue of its class for this number of busy lanes."""
        self.kick(hint, queue_of(busy_lanes, low=hint.low))

    def close(self, *, timeout_s: float = 2.0) -> None:
        """Publish the waiting hints for at most `timeout_s` seconds, then stop.

        The sweeper finds the lanes of the rest.
        """
        with contextlib.suppress(Full):
            self._waiting.put(None, timeout=timeout_s)
        self._thread.join(timeout_s)
        self._closed.set()

    def _run(self) -> None:
        while (routed := self._waiting.get()) is not None:
            try:
                self._publish(*routed)
            except Exception as error:
                telemetry.kicks_failed.inc()
                log.error("kick_crashed", exc_info=error)

    def _publish(self, hint: Hint, queue: str) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._dispatcher.publish(hint, queue) and not self._closed.wait(pause_s):
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


class QuietHints:
    """Dispatcher of the sweeper's own events: into the queue of projects that are not busy."""

    def __init__(self, publisher: BackgroundDispatcher) -> None:
        self._publisher = publisher

    def kick(self, hint: Hint, project_id: ProjectId) -> None:
        """Publish the hint; see ports.Dispatcher."""
        self._publisher.kick(hint, queue_of(0, low=hint.low))


def background_dispatcher(settings: Settings) -> BackgroundDispatcher:
    """The publisher of the API, which uses nothing else of the workers."""
    return BackgroundDispatcher(CeleryDispatcher(make_app(settings)))
