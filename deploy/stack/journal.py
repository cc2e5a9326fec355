"""State of the supervisor on disk, for `up`, `down`, `status` and the next supervisor."""

from __future__ import annotations

import logging
import os
import secrets
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ValidationError

from deploy.stack.fingerprint import fingerprint
from deploy.stack.identity import Identity, alive, identify
from deploy.stack.layout import Layout, write_private
from pipeline.settings import Settings

log = logging.getLogger(__name__)


class ProcessState(StrEnum):
    """The state of one process."""

    WAITING = "waiting"  # for processes that must start before it
    STARTING = "starting"
    HEALTHY = "healthy"  # it has answered since its last start
    RESTARTING = "restarting"
    STOPPED = "stopped"


class Phase(StrEnum):
    """The phase of the whole stack."""

    STARTING = "starting"
    HEALTHY = "healthy"  # all processes were healthy at the same time
    STOPPING = "stopping"
    FAILED = "failed"


class ProcessNote(BaseModel):
    """A process as `state.json` shows it."""

    state: ProcessState = ProcessState.WAITING
    pid: int | None = None
    started: str = ""
    restarts: int = 0

    def identity(self) -> Identity | None:
        """The process's identity, to tell it from a later one with its pid."""
        return None if self.pid is None else Identity(self.pid, self.started)


class Report(BaseModel):
    """Result of a check, a sentence for each setting.

    `refused`: settings that cannot work. `warnings`: settings that may not work yet.
    """

    refused: list[str] = []
    warnings: list[str] = []


class State(BaseModel):
    """State of the stack at the time of writing. Its pids may belong to other processes now."""

    supervisor: ProcessNote
    phase: Phase = Phase.STARTING
    # A stack of this directory was healthy once; earlier releases do not write it.
    served: bool = True
    url: str
    llm: str
    embedder: str
    failure: str = ""
    failed_process: str | None = None
    warnings: list[str] = []
    foreground: bool = False  # started by `run`: its own supervisor restarts it, not `up`
    # Number of times that the settings were applied without a restart; None: it cannot do that.
    reloads: int | None = None
    reload_failure: str = ""
    salt: str = ""
    settings: dict[str, str] = {}  # a hash of each, see fingerprint.py
    log_sizes: dict[str, int] = {}  # at the supervisor's start: later lines belong to this start
    processes: dict[str, ProcessNote] = {}

    def survivors(self) -> dict[str, Identity]:
        """Children that still run."""
        identities = {name: note.identity() for name, note in self.processes.items()}
        return {name: who for name, who in identities.items() if who is not None and alive(who)}


def read(layout: Layout) -> State | None:
    """State of the last supervisor; None if there was none, or if the file is unreadable."""
    try:
        return State.model_validate_json(layout.state.read_text())
    except (FileNotFoundError, ValidationError):
        return None


class Journal:
    """Writes every change to disk: pid files at once, and state.json as a whole."""

    def __init__(self, layout: Layout, settings: Settings, *, foreground: bool = False) -> None:
        """Record this process as the supervisor."""
        self._layout = layout
        before = read(layout)
        salt = secrets.token_hex(16)
        self.state = State(
            supervisor=note_of(os.getpid()),
            served=before is not None and before.served,
            url=f"http://127.0.0.1:{settings.port}",
            llm=settings.llm.model,
            embedder=settings.embedder.model,
            foreground=foreground,
            reloads=0,
            salt=salt,
            settings=fingerprint(settings, salt),
            log_sizes=layout.log_sizes(),
        )
        self._write_pid("supervisor", os.getpid())

    def phase(self, phase: Phase) -> None:
        """Write the phase of the stack."""
        self.state.phase = phase
        self.state.served |= phase is Phase.HEALTHY
        self.write()

    def failed(self, message: str, process: str | None) -> None:
        """Write that the start failed, and the reason."""
        self.state.failure, self.state.failed_process = message, process
        self.phase(Phase.FAILED)

    def reloaded(self, settings: Settings | None, failure: str = "") -> None:
        """Write that new settings are in force, or the reason why the old ones still are."""
        if settings is not None:
            self.state.llm, self.state.embedder = settings.llm.model, settings.embedder.model
            self.state.settings = fingerprint(settings, self.state.salt)
        self.state.reloads = (self.state.reloads or 0) + 1
        self.state.reload_failure = failure
        self.write()

    def warn(self, warnings: list[str]) -> None:
        """Write a warning."""
        self.state.warnings = warnings
        self.write()

    def process(self, name: str, state: ProcessState) -> None:
        """Record a new state of a process. In a state without a process, the pid is removed."""
        note = self.state.processes.setdefault(name, ProcessNote())
        note.state = state
        if state in (ProcessState.RESTARTING, ProcessState.STOPPED):
            note.pid, note.started = None, ""
            for trace in (self._layout.pid_file(name), self._layout.ready_file(name)):
                trace.unlink(missing_ok=True)
        note.restarts += state is ProcessState.RESTARTING
        self.write()

    def started(self, name: str, pid: int) -> None:
        """Record that `name` runs as `pid`."""
        self._write_pid(name, pid)
        old = self.state.processes.get(name, ProcessNote())
        note = note_of(pid)
        note.restarts = old.restarts
        self.state.processes[name] = note
        self.write()

    def forget(self, name: str) -> None:
        """Remove a process that has done its work."""
        self.state.processes.pop(name, None)
        self._layout.pid_file(name).unlink(missing_ok=True)
        self.write()

    def close(self) -> None:
        """Remove the pid files, because the supervisor ends."""
        self._layout.pid_file("supervisor").unlink(missing_ok=True)
        self.write()

    def write(self) -> None:
        """Replace `state.json` in one step."""
        self._put(self._layout.state, self.state.model_dump_json(indent=1))

    def _write_pid(self, name: str, pid: int) -> None:
        self._put(self._layout.pid_file(name), f"{pid}\n")

    def _put(self, path: Path, text: str) -> None:
        try:
            write_private(path, text)
        except OSError as error:
            # A full disk must not stop the supervisor from restarting processes.
            log.error("note_not_written path=%s error=%s", path.name, error)


def note_of(pid: int) -> ProcessNote:
    """A new entry for a running process."""
    who = identify(pid)
    return ProcessNote(state=ProcessState.STARTING, pid=pid, started=who.started if who else "")
