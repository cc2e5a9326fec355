"""Watchdog: a process that makes no progress ends itself, and its supervisor restarts it.

A running process may still do no work: its consumer may have lost the broker without an error, or
its loop may hang in a call. So the watchdog checks progress instead of answers to a ping.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

log = structlog.get_logger()

LOOKS = 12  # bad observations in a row that end the process
LOOK_S = 60.0  # longer than any observation: a broker that does not answer costs 6 s
EXIT_CODE = 70  # EX_SOFTWARE
SILENT = "loop_silent"


@dataclass(frozen=True, slots=True)
class Look:
    """One observation of the process.

    Since the last one, `turned`: its event loop ran; `moved`: it took a hint or finished one.
    `full`: it runs the maximum number of stages. `backlog`: hints in the broker, None if it does
    not answer.
    """

    turned: bool
    moved: bool
    full: bool
    backlog: int | None

    @property
    def starves(self) -> bool:
        """True if hints wait and the process could take them, but took none."""
        return bool(self.backlog) and not self.moved and not self.full


class Suspicion:
    """Counter of bad observations in a row.

    It counts observations instead of seconds, because a frozen process or machine makes none.
    """

    def __init__(self, looks: int = LOOKS) -> None:
        self._looks = looks
        self._silent = 0
        self._starving = 0

    def after(self, look: Look) -> str | None:
        """Reason to end the process: `loop_silent`, `nothing_taken`, or None to continue."""
        self._silent = 0 if look.turned else self._silent + 1
        self._starving = self._starving + 1 if look.starves else 0
        if self._silent >= self._looks:
            return SILENT
        return "nothing_taken" if self._starving >= self._looks else None


def end_with(task: asyncio.Task[Any] | Future[Any]) -> None:
    """Done-callback of an endless task: end the process if the task failed, to be restarted."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("background_task_died", exc_info=error)
        os._exit(EXIT_CODE)


class Watched(Protocol):
    """The part of a process that the watchdog reads."""

    @property
    def taken(self) -> int:
        """Number of hints taken so far."""

    @property
    def done(self) -> int:
        """Number of hints finished so far."""

    def turned(self) -> bool:
        """True if the event loop has made progress since the last call."""

    def running(self) -> str | None:
        """Name of the task that blocks the loop at this moment, if any; a lane's id in a worker."""


class Watchdog:
    """A thread that observes the process every `stuck_s` / LOOKS seconds.

    `most`: maximum number of stages at the same time.
    """

    def __init__(
        self,
        runtime: Watched,
        backlog: Callable[[], int | None],
        *,
        most: int,
        stuck_s: float,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        """`backlog`: number of waiting hints, None if unknown. `end`: ends the process."""
        self._runtime = runtime
        self._backlog = backlog
        self._most = most
        self._stuck_s = stuck_s
        self._every_s = stuck_s / LOOKS
        self._end = end
        self._seen = (0, 0)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread, if it was started."""
        self._closed.set()
        if self._thread.ident is not None:
            self._thread.join(self._every_s)
        faulthandler.cancel_dump_traceback_later()

    def look(self) -> Look:
        """Make one observation. Blocks for seconds if the broker does not answer."""
        counts = (self._runtime.taken, self._runtime.done)
        moved, self._seen = counts != self._seen, counts
        return Look(
            turned=self._runtime.turned(),
            moved=moved,
            full=counts[0] - counts[1] >= self._most,
            backlog=self._backlog(),
        )

    def _run(self) -> None:
        """Observe the process until `close`; end it once the observations show that it is stuck."""
        suspicion = Suspicion()
        while not self._closed.wait(self._every_s):
            # If C code holds the GIL, this thread cannot run either: faulthandler's own C thread
            # ends the process.
            faulthandler.dump_traceback_later(self._stuck_s + LOOK_S, exit=True)
            if (stuck := suspicion.after(self.look())) is not None:
                log.error(
                    "worker_stuck",
                    reason=stuck,
                    for_s=self._stuck_s,
                    lane_id=self._runtime.running() if stuck == SILENT else None,
                )
                faulthandler.dump_traceback()
                self._end(EXIT_CODE)
                return
