"""The base of Postgres, Redis and Chroma: prepare, command, ready; and a start without supervisor.

The supervisor uses the first three. Tests use the rest:

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
from types import TracebackType
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
    """One server with its data under `root/<name>`, on a port of 127.0.0.1 only."""

    name: ClassVar[str]

    def __init__(self, root: Path, *, port: int | None = None) -> None:
        self.layout = Layout(root.resolve())
        self.layout.create()
        self.port = port or ports.choose()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abc.abstractmethod
    def url(self) -> str:
        """The URL for clients, password included."""

    @abc.abstractmethod
    def prepare(self) -> None:
        """Make the data directory fit to start on, after a crash too. Blocks. Safe to repeat."""

    @abc.abstractmethod
    def command(self) -> Command:
        """Command line of the prepared server."""

    @abc.abstractmethod
    def ready(self) -> bool:
        """True when it answers its protocol now. Blocks for about a second at most."""

    def end_rest(self) -> None:  # noqa: B027  nothing to do for most
        """End what may outlive the server's own process. Blocks. Safe to repeat."""

    @property
    def pid(self) -> int:
        """The server's own pid, fit for kill -9."""
        if self._process is None:
            raise StackError(f"{self.name} was not started", process=self.name)
        return self._process.pid

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start it and wait until it answers. It ends with this process, however that ends.

        Started from another thread than the main one it is not tied to us: the tie would end it
        with that thread.
        """
        self.prepare()
        command = self.command()
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
        """Stop it in good order, by force after 30 s. Stopped already: nothing happens."""
        if self._process is None:
            return
        self._process.send_signal(self.command().stop_signal)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self.end_rest()

    def kill(self) -> None:
        """End it as a fault test does: SIGKILL. `start` brings it back, same port, same data."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def exchange(port: int, request: bytes, *, enough: int) -> bytes:
    """The server's answer to `request`: at least `enough` bytes, or fewer if it closes."""
    answer = b""
    try:
        with socket.create_connection((ports.HOST, port), timeout=PROBE_TIMEOUT_S) as connection:
            connection.settimeout(PROBE_TIMEOUT_S)
            connection.sendall(request)
            # All that is there: to close with bytes unread is a reset, which servers log.
            while len(answer) < enough and (more := connection.recv(4096)):
                answer += more
    except OSError:
        return answer
    return answer


def http_ok(port: int, path: str) -> bool:
    """True when `GET path` on 127.0.0.1 answers 200."""
    request = f"GET {path} HTTP/1.1\r\nHost: {ports.HOST}:{port}\r\nConnection: close\r\n\r\n"
    answer = exchange(port, request.encode(), enough=len(b"HTTP/1.1 200"))
    return answer.startswith(b"HTTP/") and answer[8:12] == b" 200"


def own_environment() -> Mapping[str, str]:
    """The few variables a server needs: none of our secrets, nothing that changes its behaviour."""
    inherited = inherited_environment()
    return {name: inherited[name] for name in SERVER_VARIABLES if name in inherited} | {
        "LC_ALL": "C"
    }
