"""One supervised process: started, probed until it answers, restarted when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Coroutine
from typing import Any

from deploy.stack.command import Command
from deploy.stack.failure import StackError
from deploy.stack.journal import Journal, ProcessState
from deploy.stack.layout import Layout
from deploy.stack.programs import Program

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 5.0
STEADY_S = 10.0
GRACE_S = 30.0
PROBE_S = 0.03
HOPELESS_ENDS = 5  # ends in a row before it was ever healthy: 6 s of delays

log = logging.getLogger(__name__)


class Backoff:
    """Exponential backoff before a restart; it starts over after a stable run."""

    def __init__(self) -> None:
        self._next_s = FIRST_DELAY_S

    def after(self, alive_s: float) -> float:
        """Seconds to wait after a run of `alive_s` seconds."""
        if alive_s >= STEADY_S:
            self._next_s = FIRST_DELAY_S
        delay_s = self._next_s
        self._next_s = min(delay_s * 2, LONGEST_DELAY_S)
        return delay_s


class Child:
    """A supervised program, from `start` to `stop`.

    `healthy` is set while it answers. `give_up` is called for an error that a restart does not fix;
    a child that was healthy once is always restarted.
    """

    def __init__(
        self,
        program: Program,
        *,
        layout: Layout,
        journal: Journal,
        give_up: Callable[[StackError], None],
        grace_s: float = GRACE_S,
    ) -> None:
        """`grace_s`: time between the stop signal and SIGKILL."""
        self.name = program.name
        self.program = program
        self.healthy = asyncio.Event()
        self._layout = layout
        self._journal = journal
        self._give_up = give_up
        self._grace_s = grace_s
        self._stopping = asyncio.Event()
        self._proven = False
        self._ends = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the program, and restart it whenever it ends."""
        self._task = asyncio.create_task(self._keep_alive(), name=self.name)
        self._task.add_done_callback(self._unsupervised)

    def _unsupervised(self, task: asyncio.Task[None]) -> None:
        # A bug in the supervisor: end the stack, because its processes would not be restarted.
        if not task.cancelled() and (error := task.exception()):
            log.error("child_lost name=%s", self.name, exc_info=error)
            self._give_up(StackError(f"supervisor: {error!r}"))

    async def stop(self) -> None:
        """Send the stop signal, and SIGKILL after `grace_s`. Returns when the program has ended."""
        self._stopping.set()
        if self._task is not None:
            await asyncio.wait([self._task])
        self._journal.process(self.name, ProcessState.STOPPED)

    async def _keep_alive(self) -> None:
        """Run the program again and again, with a backoff, until `stop`."""
        backoff = Backoff()
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                await self._live_once()
            except (StackError, OSError) as error:
                log.error("child_unprepared name=%s error=%s", self.name, error)
                self._hopeless(StackError(str(error), process=self.name))
            self.healthy.clear()
            if self._stopping.is_set():
                return
            delay_s = backoff.after(time.monotonic() - began)
            self._journal.process(self.name, ProcessState.RESTARTING)
            self._count_end()
            log.warning("child_restarts name=%s delay_s=%.1f", self.name, delay_s)
            await wait_set(self._stopping, delay_s)

    async def _live_once(self) -> None:
        """Run the program once, until it ends or `stop`."""
        self._journal.process(self.name, ProcessState.STARTING)
        command = await asyncio.to_thread(self.program.prepare)
        if self._stopping.is_set():
            return
        process = await spawn(command, self._layout, self.name)
        self._journal.started(self.name, process.pid)
        log.info("child_started name=%s pid=%d", self.name, process.pid)
        probe = asyncio.create_task(self._probe())
        await first_of(process.wait(), self._stopping.wait())
        probe.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await probe
        if process.returncode is None:
            await end(process, command.stop_signal, self._grace_s)
        await asyncio.to_thread(self.program.end_rest)
        log.info("child_ended name=%s pid=%d %s", self.name, process.pid, how(process))

    async def _probe(self) -> None:
        while not await asyncio.to_thread(self.program.ready):
            if await wait_set(self._stopping, PROBE_S):
                return
        self._journal.process(self.name, ProcessState.HEALTHY)
        self.healthy.set()
        self._proven = True
        log.info("child_healthy name=%s", self.name)

    def _count_end(self) -> None:
        self._ends += 1
        if self._ends >= HOPELESS_ENDS:
            text = f"{self.name} does not stay up: it ended {self._ends} times"
            self._hopeless(StackError(text, process=self.name))

    def _hopeless(self, error: StackError) -> None:
        if not self._proven:
            self._give_up(error)


async def spawn(command: Command, layout: Layout, name: str) -> Process:
    """Start a child that writes to its own log and ends with this process.

    Call it in the event loop's thread, which lives as long as the supervisor: see Command.launch.
    """
    with layout.log_file(name).open("ab") as output:
        return await asyncio.create_subprocess_exec(
            *command.launch(tied=True),
            env=dict(command.env),
            cwd=command.cwd,
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            # Ctrl-C at the terminal must reach only the supervisor, which stops in order.
            start_new_session=True,
        )


async def end(process: Process, signum: signal.Signals, grace_s: float = GRACE_S) -> None:
    """Signal a child, and kill it if it still runs after `grace_s` seconds."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signum)
    try:
        async with asyncio.timeout(grace_s):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def first_of(*waits: Coroutine[Any, Any, object]) -> None:
    """Return when the first of the coroutines returns; cancel the others."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def wait_set(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait for the event, at most `timeout_s` seconds; True if it was set."""
    # Not wait_for: before Python 3.12 it may swallow a cancellation that comes with the event.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
    return event.is_set()


def how(process: Process) -> str:
    """Exit code or signal of a child that has ended, for the log."""
    code = process.returncode
    if code is not None and code < 0:
        return f"signal={signal.Signals(-code).name}"
    return f"exit={code}"
