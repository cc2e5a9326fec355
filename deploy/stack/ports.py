"""Ports of the stack's own servers: free ones, remembered over restarts so that URLs stay valid."""

from __future__ import annotations

import errno
import json
import random
import socket
from collections.abc import Collection
from pathlib import Path

from deploy.stack.failure import StackError
from deploy.stack.layout import write_private

HOST = "127.0.0.1"
LOWEST = 20_000
DEFAULT_EPHEMERAL = 32_768
EPHEMERAL_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def problem(port: int) -> str | None:
    """The reason why a server cannot listen on this port of 127.0.0.1; None if it can."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Like the servers: connections in TIME_WAIT after a stop do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return "another program is listening on it"
            return str(error.strerror or error)
    return None


def candidates() -> range:
    """Ports that the kernel never uses for outgoing connections.

    A client that retries a loopback port in the ephemeral range may get that port as its own source
    port and connect to itself; then the restarted server cannot listen on it.
    """
    try:
        first = int(EPHEMERAL_FILE.read_text().split()[0])
    except (OSError, ValueError):
        first = DEFAULT_EPHEMERAL
    return range(LOWEST, first) if first - LOWEST >= 1_000 else range(LOWEST, 65_536)


def choose(reserved: Collection[int] = ()) -> int:
    """A free port of 127.0.0.1 that is not in `reserved`."""
    span = candidates()
    # Random, so that two stacks that start at the same time choose different ports.
    for port in random.SystemRandom().sample(span, k=min(len(span), 500)):
        if port not in reserved and problem(port) is None:
            return port
    raise StackError(f"no free port found between {span.start} and {span.stop - 1}")


def remembered(book: Path, names: Collection[str], *, reserved: Collection[int]) -> dict[str, int]:
    """A port for each name: the last one from `book` if it is still free, else a new one."""
    known = read(book)
    taken = set(reserved)
    ports: dict[str, int] = {}
    for name in names:
        last = known.get(name)
        keep = last is not None and last not in taken and problem(last) is None
        ports[name] = last if keep and last is not None else choose(taken)
        taken.add(ports[name])
    write_private(book, json.dumps(known | ports))
    return ports


def read(book: Path) -> dict[str, int]:
    """The ports of the last start, by server."""
    try:
        known = json.loads(book.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {str(name): port for name, port in known.items() if isinstance(port, int)}
