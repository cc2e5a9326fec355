"""The supervisor: starts servers, migration, api and workers, and stops them in order."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import functools
import logging
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence

from deploy.stack import saved_settings
from deploy.stack.child import Backoff, Child, end, spawn, wait_set
from deploy.stack.chroma_files import remove_deleted
from deploy.stack.command import Command
from deploy.stack.failure import StackError
from deploy.stack.identity import Identity, send, wait_gone
from deploy.stack.journal import Journal, Phase, ProcessState, Report, State, read
from deploy.stack.layout import Layout
from deploy.stack.maintenance import alone, lock
from deploy.stack.programs import Plan, Program, plan, running_edges
from deploy.stack.rolling import GiveUp, roll
from deploy.stack.waiting import wait_until
from pipeline import settings as settings_of
from pipeline.domain.errors import MemlaneError
from pipeline.settings import Settings

HEALTHY_WITHIN_S = 120.0
LEFTOVER_GRACE_S = 30.0
KILL_WAIT_S = 5.0
MIGRATE_TRIES = 5
REFUSED = 2  # exit code of migrate for settings or a schema that it cannot use
LOCK_WITHIN_S = 0.1
ROTATE_EVERY_S = 10.0
CLEAN_EVERY_S = 600.0

ALREADY_RUNNING = 3

log = logging.getLogger(__name__)


class AlreadyRunning(StackError):
    """Another supervisor has the lock of this data directory."""


def supervise(
    settings: Settings,
    layout: Layout,
    programs: Mapping[str, tuple[str, ...]],
    *,
    on_healthy: Callable[[State], None] = lambda _: None,
    foreground: bool = False,
) -> State:
    """Run the stack until SIGTERM or SIGINT, or until it cannot start. Returns how it ended.

    Errors: AlreadyRunning; StackError if another command has started servers.
    """
    with _only_one(layout), alone(layout):
        end_leftovers(read(layout))
        layout.clear_metrics()
        journal = Journal(layout, settings, foreground=foreground)
        journal.write()
        try:
            replan = functools.partial(_replan, layout, programs)
            built = plan(settings, layout, programs)
            stack = Supervisor(built, layout, journal, on_healthy, replan)
            asyncio.run(stack.run())  # noqa: TID251  a separate process
        except StackError as error:
            log.error("stack_failed error=%s", error)
            journal.failed(str(error), error.process)
        finally:
            journal.close()
        return journal.state


Replanned = tuple[Settings, Sequence[Program]]


def _replan(layout: Layout, programs: Mapping[str, tuple[str, ...]]) -> Replanned:
    """The settings as they are saved now, and the edges that they ask for."""
    saved_settings.replace_environment(layout)
    settings = settings_of.load()
    return settings, running_edges(settings, layout, programs)


@contextlib.contextmanager
def _only_one(layout: Layout) -> Iterator[None]:
    """Lock the data directory for this block; the kernel releases the lock with the process."""
    layout.create()
    with layout.lock.open("a") as file:
        # `up` and `status` take the lock for a moment, to check it.
        if not wait_until(lambda: lock(file, fcntl.LOCK_EX), LOCK_WITHIN_S):
            raise AlreadyRunning(f"a supervisor already runs {layout.root}")
        yield


def is_running(layout: Layout) -> bool:
    """True if a supervisor has the lock of this data directory."""
    try:
        with layout.lock.open("r") as file:
            return not lock(file, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def end_leftovers(state: State | None) -> dict[str, Identity]:
    """End the processes that an earlier supervisor recorded and left running.

    They got a signal when it ended; some may still finish their work. Returns those that ran.
    """
    leftovers = state.survivors() if state else {}
    for name, who in leftovers.items():
        log.warning("leftover_ends name=%s pid=%d", name, who.pid)
        send(who, signal.SIGINT if name == "postgres" else signal.SIGTERM)
    stubborn = wait_gone(leftovers.values(), LEFTOVER_GRACE_S)
    for who in stubborn:
        send(who, signal.SIGKILL)
    wait_gone(stubborn, KILL_WAIT_S)
    return leftovers


class Supervisor:
    """All children of one stack."""

    def __init__(
        self,
        plan: Plan,
        layout: Layout,
        journal: Journal,
        on_healthy: Callable[[State], None],
        replan: Callable[[], Replanned],
    ) -> None:
        """`replan`: reads the saved settings again, for SIGHUP."""
        self._plan = plan
        self._layout = layout
        self._journal = journal
        self._on_healthy = on_healthy
        self._stop = asyncio.Event()
        self._failure: StackError | None = None
        self._migrated = False
        self._servers = {program.name: self._child(program) for program in plan.servers}
        self._edges = {program.name: self._child(program) for program in plan.edges}
        self._replan = replan
        self._reloads: set[asyncio.Task[None]] = set()
        self._reload_turn = asyncio.Lock()

    def _child(self, program: Program, give_up: GiveUp | None = None) -> Child:
        give_up = give_up or self._give_up
        return Child(program, layout=self._layout, journal=self._journal, give_up=give_up)

    async def run(self) -> None:
        """Start everything, restart what dies, and stop everything at the end.

        Errors: the StackError that ended the stack.
        """
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._begin_reload)
        for child in self._children():
            self._journal.process(child.name, ProcessState.WAITING)
        start, clean_at = asyncio.create_task(self._start_in_time()), loop.time() + CLEAN_EVERY_S
        while not await wait_set(self._stop, ROTATE_EVERY_S):
            self._rotate_logs()
            if "chroma" in self._servers and loop.time() >= clean_at:
                await asyncio.to_thread(remove_deleted, self._layout.chroma)
                clean_at = loop.time() + CLEAN_EVERY_S
        for task in (start, *self._reloads):
            task.cancel()
            await asyncio.wait([task])
        await self._stop_all()
        if self._failure is not None:
            raise self._failure

    def _begin_reload(self) -> None:
        task = asyncio.create_task(self._reload())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def _reload(self) -> None:
        """Apply the saved settings to API, workers and sweeper, one process after the other."""
        async with self._reload_turn:
            settings: Settings | None = None
            try:
                settings, wanted = await asyncio.to_thread(self._replan)
                failure = await roll(self._edges, wanted, self._child, self._give_up)
            except (StackError, MemlaneError, ValueError, OSError) as error:
                failure = type(error).__name__ if isinstance(error, ValueError) else str(error)
            for name in self._journal.state.processes.keys() - {c.name for c in self._children()}:
                self._journal.forget(name)
            log.info("settings_applied failure=%s", failure or "none")
            self._journal.reloaded(None if failure else settings, failure)

    def _rotate_logs(self) -> None:
        try:
            self._layout.rotate_logs()
        except OSError as error:  # a full disk must not stop the supervisor
            log.error("logs_not_rotated error=%s", error)

    def _give_up(self, error: StackError) -> None:
        self._failure = self._failure or error
        self._stop.set()

    async def _start_in_time(self) -> None:
        try:
            async with asyncio.timeout(HEALTHY_WITHIN_S):
                await self._start()
        except TimeoutError:
            slow = self._unhealthy()
            text = f"not healthy after {HEALTHY_WITHIN_S:.0f} s: {', '.join(slow)}"
            self._give_up(StackError(text, process=slow[0]))
        except OSError as error:
            self._give_up(StackError(f"supervisor: {error}"))
        except StackError as error:
            self._give_up(error)

    def _unhealthy(self) -> list[str]:
        """Unhealthy processes that others wait for; servers first."""
        servers = [name for name, child in self._servers.items() if not child.healthy.is_set()]
        if not self._migrated:
            return servers or ["migrate"]
        edges = self._edges.items()
        return servers + [name for name, edge in edges if not edge.healthy.is_set()]

    async def _start(self) -> None:
        checking = asyncio.create_task(self._check())
        try:
            await self._start_all(checking)
        finally:
            checking.cancel()
            await asyncio.wait([checking])

    async def _start_all(self, checking: asyncio.Task[None]) -> None:
        """Start all processes, and let the edges use the servers after the migration.

        The edges load their modules at the same time, which takes most of a start.
        """
        self._layout.start_file.unlink(missing_ok=True)
        for child in self._children():
            child.start()
        if postgres := self._servers.get("postgres"):
            await postgres.healthy.wait()
        await self._migrate()
        await checking
        self._layout.start_file.touch()
        while not all(child.healthy.is_set() for child in self._children()):
            for child in self._children():
                await child.healthy.wait()
        log.info("stack_healthy")
        self._journal.phase(Phase.HEALTHY)
        self._on_healthy(self._journal.state)

    async def _check(self) -> None:
        """Check the settings. Errors: StackError, at once, for one that cannot work."""
        if self._plan.check is None:
            return
        self._layout.check_report.unlink(missing_ok=True)
        code = await self._once("check", self._plan.check)
        if code != 0:  # the check itself crashed, which says nothing about the settings
            log.error("check_failed exit=%d", code)
            return
        report = Report.model_validate_json(self._layout.check_report.read_text())
        self._journal.warn(report.warnings)
        if report.refused:
            self._give_up(StackError("\n".join(report.refused)))

    async def _migrate(self) -> None:
        """Migrate the database and create the first key.

        An external database is retried until the deadline.
        """
        backoff, tries = Backoff(), 0
        while (code := await self._once("migrate", self._plan.migrate)) != 0:
            tries += 1
            if code == REFUSED:  # no retry helps
                raise StackError("the database cannot be used", process="migrate")
            log.warning("migrate_failed exit=%d tries=%d", code, tries)
            if tries == MIGRATE_TRIES and "postgres" in self._servers:
                text = f"the database could not be set up: migrate ended with {code}"
                raise StackError(text, process="migrate")
            await asyncio.sleep(backoff.after(0))
        self._migrated = True

    async def _once(self, name: str, command: Command) -> int:
        """Run a program to its end. Returns its exit code."""
        process = await spawn(command, self._layout, name)
        self._journal.started(name, process.pid)
        try:
            return await process.wait()
        except asyncio.CancelledError:
            await end(process, command.stop_signal)
            raise
        finally:
            self._journal.forget(name)

    def _children(self) -> list[Child]:
        return [*self._servers.values(), *self._edges.values()]

    async def _stop_all(self) -> None:
        """Stop api, workers and sweeper at the same time, then the servers that they write to."""
        self._journal.phase(Phase.STOPPING)
        await asyncio.gather(*(edge.stop() for edge in self._edges.values()))
        for server in reversed(self._servers.values()):  # PostgreSQL last
            await server.stop()
        log.info("stack_stopped")
