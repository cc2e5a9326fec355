"""Two Redis servers that replicate, and three Sentinel processes that watch them."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar, Self

from deploy.stack import ports
from deploy.stack.command import Command
from deploy.stack.ports import HOST
from deploy.stack.server import Server, exchange, own_environment
from deploy.stack.servers import find_redis
from deploy.stack.waiting import wait_until

MASTER = "memlane"
SENTINELS, QUORUM = 3, 2
# Silence after which Sentinel takes a server for dead. Its default is 30 s; 5 s is usual.
DEAD_AFTER_S = 5
ELECTED_WITHIN_S = 60.0

NODE_CONFIG = """\
bind {host}
port {port}
requirepass {password}
masterauth {password}
dir ./
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
"""
SENTINEL_CONFIG = """\
bind {host}
port {port}
requirepass {password}
dir ./
sentinel sentinel-pass {password}
sentinel monitor {name} {host} {master_port} {quorum}
sentinel auth-pass {name} {node_password}
sentinel down-after-milliseconds {name} {dead_after_ms}
sentinel failover-timeout {name} 10000
"""


class SentinelProcess(Server):
    """A process of Redis or Sentinel, whose configuration it changes itself."""

    name: ClassVar[str] = "redis"

    def __init__(self, root: Path, config: str, password: str, port: int, *options: str) -> None:
        super().__init__(root, port=port)
        self._config, self._password, self._options = config, password, options

    @property
    def url(self) -> str:
        """URL of this process, without the others."""
        return f"redis://:{self._password}@{HOST}:{self.port}/0"

    @property
    def _file(self) -> Path:
        return self.layout.root / "redis.conf"

    def prepare(self) -> None:
        """Write the configuration, once: Sentinel changes it."""
        if not self._file.exists():
            self._file.write_text(self._config)

    def command(self) -> Command:
        """Command line of the process."""
        argv = (str(find_redis()), str(self._file), *self._options)
        return Command(argv, own_environment(), cwd=self.layout.root)

    def ready(self) -> bool:
        """True if it answers."""
        return self.ask("PING", enough=12).endswith(b"+PONG\r\n")

    def ask(self, command: str, *, enough: int) -> bytes:
        """The answer to a command after that to the password."""
        request = f"AUTH {self._password}\r\n{command}\r\n".encode()
        return exchange(self.port, request, enough=enough)


class SentinelGroup:
    """The servers and processes of one group, as one restartable broker.

    `kill` kills the current master; `start` restarts it as a replica, once another is the master.
    """

    def __init__(self, root: Path) -> None:
        self.password, self.sentinel_password = secrets.token_hex(16), secrets.token_hex(16)
        self._stack = ExitStack()
        first, second = ports.choose(), ports.choose()
        self.nodes = [
            self._node(root / "node-1", first),
            self._node(root / "node-2", second, of=first),
        ]
        self._killed = self.nodes[0]
        self.sentinels = [
            self._sentinel(root / f"sentinel-{number}", first) for number in range(SENTINELS)
        ]

    def _node(self, root: Path, port: int, of: int | None = None) -> SentinelProcess:
        config = NODE_CONFIG.format(host=HOST, port=port, password=self.password)
        if of is not None:
            config += f"replicaof {HOST} {of}\n"
        return SentinelProcess(root, config, self.password, port)

    def _sentinel(self, root: Path, master_port: int) -> SentinelProcess:
        port = ports.choose()
        config = SENTINEL_CONFIG.format(
            host=HOST,
            port=port,
            password=self.sentinel_password,
            name=MASTER,
            master_port=master_port,
            quorum=QUORUM,
            node_password=self.password,
            dead_after_ms=DEAD_AFTER_S * 1000,
        )
        return SentinelProcess(root, config, self.sentinel_password, port, "--sentinel")

    @property
    def settings(self) -> dict[str, str]:
        """Settings with which Memlane uses the group."""
        urls = [f"sentinel://:{self.password}@{HOST}:{each.port}/0" for each in self.sentinels]
        return {
            "MEMLANE_BROKER_URL": ";".join(urls),
            "MEMLANE_BROKER_SENTINEL_MASTER": MASTER,
            "MEMLANE_BROKER_SENTINEL_PASSWORD": self.sentinel_password,
        }

    def __enter__(self) -> Self:
        for process in (*self.nodes, *self.sentinels):
            self._stack.enter_context(process)
        assert wait_until(self._watched, ELECTED_WITHIN_S), "Sentinel does not know the replica"
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _watched(self) -> bool:
        """True if each Sentinel knows the replica and the other Sentinels."""
        shown = [each.ask(f"SENTINEL MASTER {MASTER}", enough=1_000) for each in self.sentinels]
        return all(
            b"num-slaves\r\n$1\r\n1" in text and b"num-other-sentinels\r\n$1\r\n2" in text
            for text in shown
        )

    def master(self) -> SentinelProcess:
        """The server that Sentinel names as the master."""
        command = f"SENTINEL GET-MASTER-ADDR-BY-NAME {MASTER}"
        answer = self.sentinels[0].ask(command, enough=30)
        port = int(answer.split(b"\r\n")[-2])
        return next(node for node in self.nodes if node.port == port)

    def kill(self) -> None:
        """Kill the current master."""
        self._killed = self.master()
        self._killed.kill()

    def start(self) -> None:
        """Wait for the next master, then start the killed server again."""
        assert wait_until(self.elected, ELECTED_WITHIN_S), "Sentinel elected no master"
        self._killed.start()

    def elected(self) -> bool:
        """True once another server than the killed one is the master, and says so itself."""
        master = self.master()
        return master is not self._killed and b"role:master" in master.ask(
            "INFO REPLICATION", enough=100
        )
