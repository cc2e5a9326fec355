"""Paths of the files of one stack, all below its data directory."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
from pathlib import Path

from deploy.stack.failure import StackError

SECRETS = ("postgres_password", "redis_password")
KEPT = ("env", "postgres", "postgres.init", "redis", "chroma", "logs", "api_key", *SECRETS, "run")
LOG_MOST_BYTES = 10 * 2**20
# The directory with our packages: the checkout, or site-packages.
PROJECT_ROOT = Path(__file__).resolve().parents[2]


def command_line(command: str, option: str = "") -> str:
    """A command for messages: `make up` in a checkout, `memlane up` elsewhere."""
    if (PROJECT_ROOT / "Makefile").exists():
        return f"make {command}" + (f" ARGS={option}" if option else "")
    return f"memlane {command} {option}".rstrip()


def recovery_line(key_file: Path) -> str:
    """The command that creates another admin key, for messages."""
    return f"memlane keys recover > {shlex.quote(str(key_file))}"


class Layout:
    """Paths in one data directory. Stacks with different roots share nothing."""

    def __init__(self, root: Path) -> None:
        """`root`: the data directory; `create` makes it."""
        self.root = root
        self.env = root / "env"  # the saved settings, see saved_settings.py
        self.api_key = root / "api_key"  # the first project's key
        self.chroma = root / "chroma"  # data of Chroma
        self.logs = root / "logs"
        self.run = root / "run"  # pid files, and what follows
        self.lock = self.run / "lock"  # of the supervisor
        self.servers_lock = self.run / "servers.lock"  # see maintenance.py
        self.state = self.run / "state.json"
        self.ports = self.run / "ports.json"
        self.metrics = self.run / "metrics"
        self.check_report = self.run / "check.json"
        self.start_file = self.run / "start"  # api, workers and sweeper wait for it
        self.busy_file = self.run / "api.busy"  # created by the first API process once it is busy

    def pid_file(self, name: str) -> Path:
        """Pid file of a process."""
        return self.run / f"{name}.pid"

    def ready_file(self, name: str) -> Path:
        """File that a process creates once it is ready."""
        return self.run / f"{name}.ready"

    def log_file(self, name: str) -> Path:
        """Log file of a process."""
        return self.logs / f"{name}.log"

    def key(self) -> str | None:
        """The key in `api_key`; None if there is none."""
        try:
            return self.api_key.read_text().strip() or None
        except FileNotFoundError:
            return None

    def create(self) -> None:
        """Create the directories, readable only by their owner. An existing root keeps its mode.

        Errors: StackError if the data directory is not writable.
        """
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.run, self.logs):
                folder.mkdir(mode=0o700, exist_ok=True)
            for file in (self.lock, self.servers_lock):
                file.touch(mode=0o600)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StackError(
                f"The data directory {self.root} cannot be used: {reason}."
                " Set MEMLANE_DATA_DIR to a directory you may write to."
            ) from None

    def clear_metrics(self) -> None:
        """Delete the metrics of earlier processes: counters start at 0 with the stack."""
        shutil.rmtree(self.metrics, ignore_errors=True)
        self.metrics.mkdir(mode=0o700)

    def written_files(self) -> list[Path]:
        """Files that a stack wrote into the data directory."""
        return [path for name in KEPT if (path := self.root / name).exists()]

    def delete(self) -> None:
        """Delete the files that a stack wrote; other files in the data directory stay."""
        for path in self.written_files():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def has_secret(self, name: str) -> bool:
        """True if there is a password in file `name`."""
        path = self.root / name
        return path.exists() and bool(path.read_text().strip())

    def secret(self, name: str) -> str:
        """The random password in file `name`, created at the first call."""
        path = self.root / name
        if not self.has_secret(name):
            write_private(path, secrets.token_hex(24))
        return path.read_text().strip()

    def rotate_logs(self, most_bytes: int = LOG_MOST_BYTES) -> None:
        """Move each log over the limit to NAME.log.1, and continue with an empty file.

        The log is copied and truncated in place, because its writer has it open for appending.
        Lines written between the two steps are lost; the alternative is a pipe for each line.
        """
        for path in self.logs.glob("*.log"):
            if path.stat().st_size > most_bytes:
                shutil.copyfile(path, path.with_name(f"{path.name}.1"))
                os.truncate(path, 0)

    def log_sizes(self) -> dict[str, int]:
        """Size of each log in bytes, by process."""
        return {path.stem: path.stat().st_size for path in self.logs.glob("*.log")}

    def log_tail(self, name: str, lines: int = 20, *, after: int = 0) -> list[str]:
        """The last lines of a process's log that were written after its first `after` bytes."""
        path = self.log_file(name)
        if not path.exists():
            return []
        written = path.read_bytes()
        new = written[after:] if after <= len(written) else written  # if shorter, it was rotated
        return new.decode(errors="replace").splitlines()[-lines:]


def write_private(path: Path, text: str) -> None:
    """Write `text` to `path` atomically, with mode 600."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)
