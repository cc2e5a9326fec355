"""Priority of a backend: that of its client.

The local stack runs workers at a higher nice value, so that searches get a processor first. A
worker's statements run in backends of PostgreSQL, which start at the server's own value: beside 50
events a second they took as much of a processor as the worker.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg

PROCESSES = Path("/proc")


def lower(driver: asyncpg.Connection[Any], *, port: int) -> None:
    """Raise the nice value of the connection's backend to that of this process.

    `port`: of this end of the connection. It does nothing if the backend runs elsewhere, or if this
    process may not change it. Linux only. Source: setpriority(2), sched(7).
    """
    nice = os.nice(0)
    backend = PROCESSES / str(driver.get_server_pid())
    if nice <= 0 or not _serves(backend, port):
        return
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, driver.get_server_pid(), nice)
        # Each backend has a session of its own. If the kernel groups processes by session, a nice
        # value counts within the group, and this one for the group.
        (backend / "autogroup").write_text(str(nice))


def _serves(backend: Path, port: int) -> bool:
    """Tell if this process serves a client at this port: PostgreSQL puts it into its title.

    The pid alone may be that of another process, if the server runs on another machine or in a
    container.
    """
    with suppress(OSError):
        title = (backend / "cmdline").read_bytes()
        return title.startswith(b"postgres: ") and b"(%d)" % port in title
    return False
