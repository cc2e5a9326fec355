"""Hosts in network namespaces of their own, on one bridge; packets between two can be dropped.

Needs root, and Debian's packages iproute2 and iptables. Nothing outside this machine reaches the
hosts, because the bridge has no link to another network.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

NET = "10.231.77"
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def run(*command: str) -> None:
    """Run a command. Errors: CalledProcessError, with its output."""
    subprocess.run(command, check=True, capture_output=True, text=True)


@dataclass
class Network:
    """A bridge in the namespace of this process, at `.254`, and its hosts by name."""

    prefix: str
    _numbers: dict[str, int] = field(default_factory=dict)

    @property
    def bridge(self) -> str:
        return f"{self.prefix}-br"

    @property
    def mask(self) -> str:
        return f"{NET}.0/24"

    def namespace(self, host: str) -> str:
        return f"{self.prefix}-{host}"

    def address(self, host: str) -> str:
        return f"{NET}.{self._numbers[host]}"

    def create(self) -> None:
        run("ip", "link", "add", self.bridge, "type", "bridge")
        run("ip", "address", "add", f"{NET}.254/24", "dev", self.bridge)
        run("ip", "link", "set", self.bridge, "up")

    def add(self, host: str) -> None:
        """Create a host: a namespace with the loopback interface and a link to the bridge."""
        number = self._numbers[host] = len(self._numbers) + 1
        inner, outer, name = f"{self.prefix}i{number}", f"{self.prefix}o{number}", "eth0"
        namespace = self.namespace(host)
        run("ip", "netns", "add", namespace)
        run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner)
        run("ip", "link", "set", inner, "netns", namespace, "name", name)
        run("ip", "link", "set", outer, "master", self.bridge, "up")
        run("ip", "-n", namespace, "address", "add", f"{self.address(host)}/24", "dev", name)
        for interface in ("lo", name):
            run("ip", "-n", namespace, "link", "set", interface, "up")

    def remove(self) -> None:
        """Remove the hosts and the bridge; processes must have ended."""
        for host in self._numbers:
            run("ip", "netns", "delete", self.namespace(host))
        run("ip", "link", "delete", self.bridge)

    @contextmanager
    def inside(self, host: str) -> Iterator[None]:
        """Move this thread to the host: the processes that it starts run there."""
        with ExitStack() as files:
            home = files.enter_context(Path("/proc/thread-self/ns/net").open("rb"))
            there = files.enter_context(Path(f"/run/netns/{self.namespace(host)}").open("rb"))
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(home.fileno())

    @contextmanager
    def dropped(self, first: str, second: str) -> Iterator[None]:
        """Drop all packets between two hosts, without any answer to the sender."""
        rules = [(first, self.address(second)), (second, self.address(first))]
        for host, source in rules:
            self._filter(host, "-I", source)
        try:
            yield
        finally:
            for host, source in rules:
                self._filter(host, "-D", source)

    def _filter(self, host: str, action: str, source: str) -> None:
        inside = ("ip", "netns", "exec", self.namespace(host))
        run(*inside, "iptables", action, "INPUT", "-s", source, "-j", "DROP")


def _enter(namespace: int) -> None:
    if LIBC.setns(namespace, CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@contextmanager
def network(prefix: str, *hosts: str) -> Iterator[Network]:
    """A network with these hosts. `prefix`: of the names of its interfaces, short."""
    made = Network(prefix)
    made.create()
    try:
        for host in hosts:
            made.add(host)
        yield made
    finally:
        made.remove()
