"""The one door through which the API and the sweeper hand hints to the workers."""

from __future__ import annotations

import contextlib
import queue
import threading
from uuid import UUID

import structlog
from celery import Celery
from kombu.exceptions import ChannelError, OperationalError

from pipeline import telemetry
from pipeline.domain import StageName
from pipeline.settings import Settings
from workers.app import QUEUE, make_app, task_name

log = structlog.get_logger()

# Hints beyond this are dropped: the sweeper finds their lanes, and memory stays bounded.
MOST_WAITING = 10_000
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 2.0
Hint = tuple[UUID, int, StageName]


class CeleryDispatcher:
    """Publishes at once, on the caller's thread."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def publish(self, lane_id: UUID, fence: int, stage: StageName) -> bool:
        """False where the broker did not take it: no loss, the ledger knows what is due."""
        try:
            self._app.send_task(task_name(stage), args=(str(lane_id), fence))
        except (OperationalError, OSError) as error:
            telemetry.kicks_failed.inc()
            log.warning("kick_failed", lane_id=str(lane_id), error=type(error).__name__)
            return False
        return True

    def backlog(self) -> int | None:
        """How many hints wait in the broker, or None where it is out of reach."""
        try:
            with self._app.connection_for_write() as connection:
                channel = connection.default_channel
                declared = channel.queue_declare(QUEUE, passive=True)
        except ChannelError:
            return 0  # no worker has declared the queue yet
        except (OperationalError, OSError):
            return None
        return int(declared.message_count)


class BackgroundDispatcher:
    """Publishes from a thread of its own, again and again until the broker takes a hint.

    The API hands over everything, so that accepting an add never waits for the broker. A worker
    tries on its own thread first (`at_once`): then a kill loses no more than the hint in hand.
    """

    def __init__(self, dispatcher: CeleryDispatcher, *, at_once: bool) -> None:
        self._dispatcher = dispatcher
        self._at_once = at_once
        self._waiting: queue.Queue[Hint | None] = queue.Queue(MOST_WAITING)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kicks", daemon=True)
        self._thread.start()

    def kick(self, lane_id: UUID, fence: int, stage: StageName) -> None:
        if self._at_once and self._dispatcher.publish(lane_id, fence, stage):
            return
        try:
            self._waiting.put_nowait((lane_id, fence, stage))
        except queue.Full:
            telemetry.kicks_failed.inc()

    def close(self, *, timeout_s: float = 2.0) -> None:
        """Publish what is waiting, within the time given; what is left is the sweeper's."""
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=timeout_s)
        self._thread.join(timeout_s)
        self._closed.set()

    def _run(self) -> None:
        while (hint := self._waiting.get()) is not None:
            pause_s = FIRST_PAUSE_S
            while not self._dispatcher.publish(*hint) and not self._closed.wait(pause_s):
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


def background_dispatcher(settings: Settings) -> BackgroundDispatcher:
    """For the API, which may know no more of the workers than this."""
    return BackgroundDispatcher(CeleryDispatcher(make_app(settings)), at_once=False)
