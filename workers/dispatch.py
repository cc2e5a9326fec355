"""The one door through which the API and the sweeper hand hints to the workers."""

from __future__ import annotations

import contextlib
import queue
import threading
from uuid import UUID

import structlog
from celery import Celery
from kombu.exceptions import OperationalError

from pipeline import telemetry
from pipeline.domain import StageName
from pipeline.settings import Settings
from workers.app import make_app, task_name

log = structlog.get_logger()

# Hints beyond this are dropped: the sweeper finds their lanes, and memory stays bounded.
MOST_WAITING = 10_000


class CeleryDispatcher:
    """Publishes at once, on the caller's thread. For workers and the sweeper."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def kick(self, lane_id: UUID, fence: int, stage: StageName) -> None:
        self.publish(lane_id, fence, stage)

    def publish(self, lane_id: UUID, fence: int, stage: StageName) -> bool:
        """False where the broker did not take it: no loss, the ledger knows what is due."""
        try:
            self._app.send_task(task_name(stage), args=(str(lane_id), fence))
        except (OperationalError, OSError) as error:
            telemetry.kicks_failed.inc()
            log.warning("kick_failed", lane_id=str(lane_id), error=type(error).__name__)
            return False
        return True

    def reachable(self) -> bool:
        """Whether the broker takes connections right now."""
        connection = self._app.connection_for_write()
        try:
            connection.connect()
        except (OperationalError, OSError):
            return False
        finally:
            connection.release()
        return True


class BackgroundDispatcher:
    """Publishes from a thread of its own, so that accepting an add never waits for the broker."""

    def __init__(self, dispatcher: CeleryDispatcher) -> None:
        self._dispatcher = dispatcher
        self._waiting: queue.Queue[tuple[UUID, int, StageName] | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="kicks", daemon=True)
        self._thread.start()

    def kick(self, lane_id: UUID, fence: int, stage: StageName) -> None:
        try:
            self._waiting.put_nowait((lane_id, fence, stage))
        except queue.Full:
            telemetry.kicks_failed.inc()

    def close(self, *, timeout_s: float = 2.0) -> None:
        """Publish what is waiting, within the time given."""
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=timeout_s)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (hint := self._waiting.get()) is not None:
            self._dispatcher.publish(*hint)


def background_dispatcher(settings: Settings) -> BackgroundDispatcher:
    return BackgroundDispatcher(CeleryDispatcher(make_app(settings)))
