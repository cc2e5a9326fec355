"""Lock against two commands that start servers on one data directory.

The supervisor holds it while it runs; `reindex`, `backup` and `restore` of a stopped stack hold it
until their servers have ended. The kernel releases it with the process.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from typing import IO

from deploy.stack.failure import StackError
from deploy.stack.layout import Layout
from deploy.stack.waiting import wait_until

# A check of the lock by another command takes it for a moment.
WITHIN_S = 0.5
IN_USE = (
    "another command, such as reindex, backup or restore, has started servers on {root}: run this"
    " again when it has ended"
)


def lock(file: IO[str], kind: int) -> bool:
    """Take a lock of fcntl; False if another process has it."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def alone(layout: Layout) -> Iterator[None]:
    """Be the only process that starts servers on the data directory, for this block.

    Errors: StackError if another command does.
    """
    with layout.servers_lock.open("a") as file:
        if not wait_until(lambda: lock(file, fcntl.LOCK_EX), WITHIN_S):
            raise StackError(IN_USE.format(root=layout.root))
        yield
