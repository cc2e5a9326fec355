"""The folder of an outbox: names of files that survive a power failure."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def make_folder(folder: Path, *, mode: int = 0o700) -> None:
    """Create the folder durably, if it is missing; only its owner may read it.

    Errors: OSError; then the next call creates it.
    """
    if folder.is_dir():
        return
    make_folder(folder.parent, mode=0o777)
    folder.mkdir(mode, exist_ok=True)
    try:
        sync_folder(folder.parent)
    except OSError:
        with suppress(OSError):
            folder.rmdir()
        raise


def sync_folder(folder: Path) -> None:
    """Make the names of the folder's files durable. Errors: OSError."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
