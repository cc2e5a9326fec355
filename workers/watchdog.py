"""Watchdog: a worker that makes no progress ends itself, and its supervisor starts another.

A process that runs is not one that works: a consumer may have lost its broker without a word, a
loop may hang in a call that never returns. So progress is watched, not answers to a ping.
"""

from __future__ import annotations

import faulthandler
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

log = structlog.get_logger()

LOOKS = 12  # in a row before the verdict
LOOK_S = 60.0  # more than one look can take: a broker out of reach is given up after 6 s
EXIT_CODE = 70  # EX_SOFTWARE
SILENT = "loop_silent"


@dataclass(frozen=True, slots=True)
class Look:
    """One observation of this process.

    Since the last one its event loop `turned`, and it `moved`: took a hint, or was done with one.
    `full`: it has as many stages under way as it may. `backlog`: hints in the broker, None where it
    is out of reach.
    """

    turned: bool
    moved: bool
    full: bool
    backlog: int | None

    @property
    def starves(self) -> bool:
        """Work waits, there is room for it, and nothing was taken."""
        return bool(self.backlog) and not self.moved and not self.full


class Suspicion:
    """Counts looks and not seconds: a process that was frozen, or its machine, saw none."""

    def __init__(self, looks: int = LOOKS) -> None:
        self._looks = looks
        self._silent = 0
        self._starving = 0

    def after(self, look: Look) -> str | None:
        """The kind of standstill, once enough observations in a row show it; else None."""
        self._silent = 0 if look.turned else self._silent + 1
        self._starving = self._starving + 1 if look.starves else 0
        if self._silent >= self._looks:
            return SILENT
        return "nothing_taken" if self._starving >= self._looks else None


class Background(Protocol):
    """A task, of asyncio or of a thread pool."""

    def cancelled(self) -> bool: ...

    def exception(self) -> BaseException | None: ...


def end_with(task: Background) -> None:
    """Callback of an endless task: if the task raises, the process ends and is restarted."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("background_task_died", exc_info=error)
        os._exit(EXIT_CODE)


class Watched(Protocol):
    """The part of the worker's runtime that the watchdog reads."""

    @property
    def taken(self) -> int: ...

    @property
    def done(self) -> int: ...

    def turned(self) -> bool: ...

    def running(self) -> str | None: ...


class Watchdog:
    """A thread that looks every `stuck_s` / LOOKS seconds. `most`: stages at once."""

    def __init__(
        self,
        runtime: Watched,
        backlog: Callable[[], int | None],
        *,
        most: int,
        stuck_s: float,
        end: Callable[[int], object] = os._exit,
    ) -> None:
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
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join(self._every_s)
        faulthandler.cancel_dump_traceback_later()

    def look(self) -> Look:
        counts = (self._runtime.taken, self._runtime.done)
        moved, self._seen = counts != self._seen, counts
        return Look(
            turned=self._runtime.turned(),
            moved=moved,
            full=counts[0] - counts[1] >= self._most,
            backlog=self._backlog(),
        )

    def _run(self) -> None:
        suspicion = Suspicion()
        while not self._closed.wait(self._every_s):
            # Where code in C keeps every thread from running, this one too, C ends the process.
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
