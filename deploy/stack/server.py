"""Base class of Postgres, Redis and Chroma: preparation, command and check of a local server.

The supervisor uses `prepared` and `ready`. Tests use the rest:

    with Postgres(tmp_path) as postgres:
        connect(postgres.url)
        postgres.kill()      # kill -9
        postgres.start()     # same port, same data
"""

from __future__ import annotations

import abc
import socket
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

from deploy.stack import ports
from deploy.stack.command import Command, inherited_environment
from deploy.stack.failure import StackError
from deploy.stack.layout import Layout
from deploy.stack.waiting import wait_until

PROBE_TIMEOUT_S = 1.0
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
SERVER_VARIABLES = ("PATH", "HOME", "USER", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class Server(abc.ABC):
    """A server with its data in `root/<name>`, on a port of 127.0.0.1 only."""

    name: ClassVar[str]

    def __init__(self, root: Path, *, port: int | None = None) -> None:
        self.layout = Layout(root.resolve())
        self.layout.create()
        self.port = port or ports.choose()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abc.abstractmethod
    def url(self) -> str:
        """URL for clients, with the password."""

    @abc.abstractmethod
    def prepare(self) -> None:
        """Make the data directory ready for a start, also after a crash. Blocks. Idempotent."""

    @abc.abstractmethod
    def command(self) -> Command:
        """Command line of the prepared server."""

    @abc.abstractmethod
    def ready(self) -> bool:
        """True if the server answers its protocol. Blocks for about a second at most."""

    def prepared(self) -> Command:
        """Prepare the server. Returns its command line."""
        self.prepare()
        return self.command()

    def end_rest(self) -> None:  # noqa: B027  most servers have nothing to end
        """End processes that may outlive the server's own process. Blocks. Idempotent."""

    @property
    def pid(self) -> int:
        """Pid of the server's own process, for kill -9."""
        if self._process is None:
            raise StackError(f"{self.name} was not started", process=self.name)
        return self._process.pid

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start the server and wait until it answers. It ends with this process.

        If called from a thread other than the main one, it is not tied to this process, because it
        would end with that thread.
        """
        command = self.prepared()
        tied = threading.current_thread() is threading.main_thread()
        with self.layout.log_file(self.name).open("ab") as log:
            self._process = subprocess.Popen(
                command.launch(tied=tied),
                env=dict(command.env),
                cwd=command.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._await_ready(self._process, timeout_s)

    def _await_ready(self, process: subprocess.Popen[bytes], timeout_s: float) -> None:
        wait_until(lambda: self.ready() or process.poll() is not None, timeout_s)
        if not self.ready():
            self.kill()
            tail = "\n".join(self.layout.log_tail(self.name))
            raise StackError(f"{self.name} did not start:\n{tail}", process=self.name)

    def stop(self) -> None:
        """Stop the server, with SIGKILL after 30 s. Does nothing if it does not run."""
        if self._process is None:
            return
        self._process.send_signal(self.command().stop_signal)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self.end_rest()

    def kill(self) -> None:
        """Kill the server, as a fault test does. `start` restarts it: same port, same data."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def exchange(port: int, request: bytes, *, enough: int) -> bytes:
    """The server's answer to `request`: at least `enough` bytes, or fewer if it closes."""
    answer = b""
    try:
        with socket.create_connection((ports.HOST, port), timeout=PROBE_TIMEOUT_S) as connection:
            connection.settimeout(PROBE_TIMEOUT_S)
            connection.sendall(request)
            # Read everything: closing with unread bytes is a reset, which servers log.
            while len(answer) < enough and (more := connection.recv(4096)):
                answer += more
    except OSError:
        return answer
    return answer


def http_ok(port: int, path: str) -> bool:
    """True if `GET path` on 127.0.0.1 returns status 200."""
    request = f"GET {path} HTTP/1.1\r\nHost: {ports.HOST}:{port}\r\nConnection: close\r\n\r\n"
    answer = exchange(port, request.encode(), enough=len(b"HTTP/1.1 200"))
    return answer.startswith(b"HTTP/") and answer[8:12] == b" 200"


def own_environment() -> Mapping[str, str]:
    """The few variables that a server needs: no secrets, and nothing that changes its behaviour."""
    inherited = inherited_environment()
    return {name: inherited[name] for name in SERVER_VARIABLES if name in inherited} | {
        "LC_ALL": "C"
    }
