"""Blocked event loops: which task runs too long without an await, for how long, and where.

One thread for each loop calls into it at short intervals. If a call does not run in time, the loop
is blocked: the thread logs the stack of the loop's own thread (files and functions, never values),
and adds the seconds to the task that runs. When the loop goes on, the thread logs and counts the
seconds, and logs the CPU time of the loop's thread: if it is much less, the loop waited for a CPU
or for the GIL.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import structlog

from pipeline import telemetry

log = structlog.get_logger()

# Calls within the time after which the loop counts as blocked.
LOOKS_IN_TIME = 4
# The only way to another thread's stack; documented, in spite of its name.
_frames = sys._current_frames  # noqa: SLF001
# Innermost frames that are logged.
MOST_FRAMES = 12


class LoopWatch:
    """Watches one event loop. `slow_s`: time without progress after which it counts as blocked."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, slow_s: float) -> None:
        """`slow_s`: see the class; the thread looks four times as often."""
        self._loop = loop
        self._slow_s = slow_s
        self._ident: int | None = None
        self._turned = threading.Event()
        # Time of the last look that saw progress, the CPU time of the loop's thread at that time,
        # and if a block since then was logged.
        self._since = time.monotonic()
        self._cpu_since = 0.0
        self._logged = False
        self._by_task: WeakKeyDictionary[asyncio.Task[Any], float] = WeakKeyDictionary()
        self._progress = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loop-watch", daemon=True)
        # Part of what `Watchdog` reads: a loop takes no hints.
        self.taken = self.done = 0

    def start(self) -> None:
        """Start the thread."""
        self._call()
        self._thread.start()

    def close(self) -> None:
        """Stop the thread."""
        self._closed.set()
        self._thread.join(self._slow_s)

    def turned(self) -> bool:
        """True if the loop has made progress since the last call."""
        turned = self._progress.is_set()
        self._progress.clear()
        return turned

    def running(self) -> str | None:
        """Name of the task that runs at this moment, if any."""
        task = asyncio.current_task(self._loop)
        return task.get_name() if task else None

    def blocked_s(self, task: asyncio.Task[Any]) -> float:
        """Longest time for which a task has blocked the loop, in seconds."""
        return self._by_task.get(task, 0.0)

    def look(self) -> None:
        """Make one observation. A blocked loop is logged once, when it is seen first."""
        now = time.monotonic()
        if self._turned.is_set():
            cpu_s = cpu_of(self._ident)
            if self._logged:
                blocked_s, used_s = now - self._since, cpu_s - self._cpu_since
                telemetry.loop_blocked_seconds.observe(blocked_s)
                log.info("loop_went_on", for_s=round(blocked_s, 2), cpu_s=round(used_s, 2))
            self._since, self._cpu_since, self._logged = now, cpu_s, False
            self._call()
            return
        silent_s = now - self._since
        if silent_s < self._slow_s:
            return
        task = asyncio.current_task(self._loop)
        if task is not None:
            self._by_task[task] = max(silent_s, self.blocked_s(task))
        if not self._logged:
            self._logged = True
            name = task.get_name() if task else None
            frames = stack_of(self._ident)
            log.warning("loop_blocked", for_s=round(silent_s, 1), task=name, frames=frames)

    def _call(self) -> None:
        """Call into the loop; the call shows that it makes progress."""
        self._turned.clear()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._turn)

    def _turn(self) -> None:
        self._ident = threading.get_ident()
        self._turned.set()
        self._progress.set()

    def _run(self) -> None:
        while not self._closed.wait(self._slow_s / LOOKS_IN_TIME):
            self.look()


def cpu_of(thread: int | None) -> float:
    """CPU time of a thread in seconds; 0.0 where the platform has no such clock."""
    clock = getattr(time, "pthread_getcpuclockid", None)
    return time.clock_gettime(clock(thread)) if clock and thread else 0.0


def stack_of(thread: int | None) -> list[str]:
    """The innermost frames of a thread, as `file:line function`; no values and no source lines."""
    frame: FrameType | None = _frames().get(thread) if thread else None
    frames: list[str] = []
    while frame is not None and len(frames) < MOST_FRAMES:
        code = frame.f_code
        frames.append(f"{code.co_filename}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return frames
