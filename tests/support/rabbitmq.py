"""A RabbitMQ server for tests, from Debian's package `rabbitmq-server`, with a password."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
from pathlib import Path
from typing import ClassVar

from deploy.stack import ports
from deploy.stack.command import Command
from deploy.stack.failure import StackError
from deploy.stack.ports import HOST
from deploy.stack.server import Server, exchange, own_environment

SCRIPT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
EPMD = Path("/usr/bin/epmd")
USER = "memlane"
# With them, other machines reach neither the server nor its control ports.
CONFIG = """\
listeners.tcp.default = {host}:{port}
default_user = {user}
default_pass = {password}
disk_free_limit.absolute = 50MB
log.console = true
log.file = false
"""
# First frame of the protocol: the client's greeting, and the type of the answer.
GREETING, METHOD_FRAME = b"AMQP\x00\x00\x09\x01", b"\x01"


class RabbitMQ(Server):
    """A RabbitMQ server, with the daemon that maps names of nodes to ports (epmd)."""

    name: ClassVar[str] = "rabbitmq"

    def __init__(self, root: Path, *, port: int | None = None) -> None:
        super().__init__(root, port=port)
        if not (SCRIPT.exists() and EPMD.exists()):
            raise StackError(
                f"{SCRIPT} is missing: install Debian's package rabbitmq-server.",
                process=self.name,
            )
        self._password = secrets.token_hex(16)
        self._epmd_port, self._node_port = ports.choose(), ports.choose()
        self._epmd: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """URL of the server."""
        return f"amqp://{USER}:{self._password}@{HOST}:{self.port}//"

    @property
    def _data(self) -> Path:
        return self.layout.root / "rabbitmq"

    def prepare(self) -> None:
        """Write the configuration, and start epmd."""
        self._data.mkdir(mode=0o700, exist_ok=True)
        config = CONFIG.format(host=HOST, port=self.port, user=USER, password=self._password)
        (self._data / "rabbitmq.conf").write_text(config)
        (self._data / "enabled_plugins").write_text("[].\n")
        if self._epmd is None:
            self._epmd = subprocess.Popen(
                [str(EPMD), "-port", str(self._epmd_port), "-address", HOST],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def command(self) -> Command:
        """Command line of the server."""
        own = {
            # Without it, a shell script stands between this process and the server.
            "RUNNING_UNDER_SYSTEMD": "true",
            "HOME": str(self._data),
            "ERL_EPMD_ADDRESS": HOST,
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_NODENAME": f"memlane-{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(self._node_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}"
            ),
            "RABBITMQ_CONFIG_FILE": str(self._data / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._data / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(self._data / "data"),
            "RABBITMQ_LOG_BASE": str(self._data),
            "RABBITMQ_PID_FILE": str(self._data / "pid"),
        }
        return Command((str(SCRIPT),), {**own_environment(), **own}, cwd=self._data)

    def ready(self) -> bool:
        """True if the server answers the greeting of its protocol."""
        return exchange(self.port, GREETING, enough=1)[:1] == METHOD_FRAME

    def kill(self) -> None:
        """Kill the server and its helper processes, epmd too; `start` starts it again."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self.end_rest()

    def end_rest(self) -> None:
        """End epmd."""
        if self._epmd is not None:
            self._epmd.terminate()
            self._epmd.wait()
            self._epmd = None
