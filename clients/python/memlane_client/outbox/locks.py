"""Locks that processes share, by flock on a file of the outbox's folder.

Such a lock belongs to the open file, which a forked child shares with its parent: the child would
keep the lock of a parent that was killed. So each child closes its copies at once.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from memlane_client.outbox.folder import make_folder


class Forkable(Protocol):
    """An object that a forked child resets."""

    def after_fork(self) -> None:
        """Drop what belongs to the parent; called in the child, before it runs anything else."""


_FORKABLE: WeakSet[Forkable] = WeakSet()
# Held by a fork, and while a file is opened, so that no child has a file that is not registered.
_FORKING = threading.RLock()


def reset_in_child(item: Forkable) -> None:
    """Call `item.after_fork()` in every forked child, for as long as the item exists."""
    _FORKABLE.add(item)


def _reset_all() -> None:
    try:
        for item in list(_FORKABLE):
            item.after_fork()
    finally:
        _FORKING.release()


os.register_at_fork(
    before=_FORKING.acquire, after_in_parent=_FORKING.release, after_in_child=_reset_all
)


class LockFile:
    """A file that one process at a time locks."""

    def __init__(self, path: Path) -> None:
        """Open the file, and create it and its folder if they are missing."""
        make_folder(path.parent)
        self._path = path
        with _FORKING:
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            reset_in_child(self)
            status = os.fstat(self._file)
        # No other file gets this number while this one is open.
        self._identity = status.st_dev, status.st_ino

    @property
    def is_open(self) -> bool:
        """False after `close`, and in a forked child."""
        return self._file is not None

    def is_current(self) -> bool:
        """True if the path still leads to this file: the folder was neither moved nor deleted."""
        try:
            status = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        return self.is_open and self._identity == (status.st_dev, status.st_ino)

    def lock(self) -> None:
        """Wait for the lock."""
        assert self._file is not None
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def try_lock(self) -> bool:
        """Take the lock; False if another process has it."""
        assert self._file is not None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(self) -> None:
        """Release the lock. A forked child has none to release."""
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file, and so release the lock."""
        with _FORKING:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def after_fork(self) -> None:
        """Close the child's copy, which leaves the parent's lock as it is."""
        self.close()
