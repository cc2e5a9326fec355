"""A graph server with Bolt and Cypher for tests: ArcadeDB, whose wheel brings its own Java.

It is the only such server in a package that the tests can install. Its Bolt answers as Neo4j 5.26.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from deploy.stack import ports
from deploy.stack.command import Command
from deploy.stack.ports import HOST
from deploy.stack.server import Server, exchange, own_environment
from pipeline.adapters.graph_bolt import BoltGraph

PASSWORD = "bolt-server-of-tests"
DATABASE = "memlane"
# Bolt listens before the database exists; this request succeeds after both.
READY, IS_READY = b"GET /api/v1/ready HTTP/1.0\r\n\r\n", b"HTTP/1.0 204"


@dataclass(frozen=True, slots=True)
class BoltAddress:
    """Address and account of a graph server. `database`: None for its default one."""

    url: str
    user: str | None = None
    password: str | None = None
    database: str | None = None

    def connect(self, *, timeout_s: float = 20.0) -> BoltGraph:
        return BoltGraph(
            self.url,
            user=self.user,
            password=self.password,
            database=self.database,
            timeout_s=timeout_s,
        )


def package() -> Path | None:
    """Folder of the package with the server; None if it is not installed."""
    spec = importlib.util.find_spec("arcadedb_embedded")
    return Path(spec.origin).parent if spec and spec.origin else None


class ArcadeDB(Server):
    """An ArcadeDB server with Bolt."""

    name: ClassVar[str] = "arcadedb"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._http_port = ports.choose()

    @property
    def url(self) -> str:
        return f"bolt://{HOST}:{self.port}"

    @property
    def address(self) -> BoltAddress:
        return BoltAddress(self.url, "root", PASSWORD, DATABASE)

    def prepare(self) -> None:
        (self.layout.root / "arcadedb").mkdir(exist_ok=True)

    def command(self) -> Command:
        folder = package()
        assert folder is not None
        properties = {
            "server.rootPath": str(self.layout.root / "arcadedb"),
            "server.rootPassword": PASSWORD,
            "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
            "server.defaultDatabases": f"{DATABASE}[root]",
            "server.httpIncomingHost": HOST,
            "server.httpIncomingPort": str(self._http_port),
            "bolt.host": HOST,
            "bolt.port": str(self.port),
        }
        options = [f"-Darcadedb.{name}={value}" for name, value in properties.items()]
        classes = ("-cp", str(folder / "jars" / "*"), "com.arcadedb.server.ArcadeDBServer")
        argv = (str(folder / "jre" / "bin" / "java"), "-Xmx512m", *options, *classes)
        return Command(argv, own_environment(), cwd=self.layout.root / "arcadedb")

    def ready(self) -> bool:
        return exchange(self._http_port, READY, enough=len(IS_READY)).startswith(IS_READY)
