"""Durable appends to the files of an outbox, which several processes share.

The newest segment and the lock stay open between appends. Each system call lets another thread take
the interpreter, for milliseconds if that thread computes; so an append makes few of them: lock,
look, write, sync and unlock.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from memlane_client.errors import OutboxFull

ADDS, ENDS = ".adds", ".ends"
# Other processes append as well, so the files are counted this often, and near the bound each time.
COUNT_EVERY_S = 1.0
# macOS has no fdatasync.
SYNC = getattr(os, "fdatasync", os.fsync)
NEAR = 0.9


def segment_path(folder: Path, number: int, suffix: str) -> Path:
    """The file of a segment."""
    return folder / f"{number:08d}{suffix}"


def segment_numbers(folder: Path) -> list[int]:
    """The segments of an outbox, oldest first."""
    return sorted(int(path.stem) for path in folder.iterdir() if path.suffix == ADDS)


def bytes_of(folder: Path) -> int:
    """Bytes of all files of an outbox."""
    size = 0
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):  # the sender has deleted it since it was listed
            size += entry.stat().st_size
    return size


class OpenFile:
    """A file of lines, open for appends."""

    def __init__(self, path: Path) -> None:
        """Open the file; a new one gets a durable name, and only its owner may read it."""
        created = not path.exists()
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        # Size after the last append; None if the last line may be incomplete.
        self._end: int | None = None
        if created:
            _sync_folder(path.parent)

    def status(self) -> os.stat_result:
        """Size and links of the file now."""
        return os.fstat(self._file)

    def append(self, line: bytes, size: int, *, durable: bool = True) -> None:
        """Append a line to the `size` bytes, after an incomplete one has been cut off."""
        if size != self._end:
            size = self._cut(size)
        self._end = None
        if os.write(self._file, line) < len(line):
            raise OSError(f"{self._path}: the disk took a part of the line only")
        if durable:
            SYNC(self._file)
        self._end = size + len(line)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _cut(self, size: int) -> int:
        """Cut off an incomplete line. Returns the size after it."""
        if not size or os.pread(self._file, 1, size - 1) == b"\n":
            return size
        whole, line_break, _ = os.pread(self._file, size, 0).rpartition(b"\n")
        size = len(whole) + len(line_break)
        os.ftruncate(self._file, size)
        return size


def append_line(path: Path, line: bytes, *, durable: bool = True) -> None:
    """Append one line to a file."""
    file = OpenFile(path)
    try:
        file.append(line, file.status().st_size, durable=durable)
    finally:
        file.close()


@dataclass(slots=True)
class SegmentWriter:
    """Appends lines to the newest segment. A full one, of `segment_bytes`, is followed by another.

    `most_bytes` bounds all files of the folder; while they are far below it, what other processes
    append counts within a second.
    """

    folder: Path
    most_bytes: int
    segment_bytes: int
    _mutex: threading.Lock = field(default_factory=threading.Lock)
    # The process that opened the files below: a forked one would share their locks.
    _process: int = 0
    _lock: int | None = None
    _segment: OpenFile | None = None
    _bytes: int = 0
    _counted_at: float = float("-inf")

    def append(self, line: bytes) -> None:
        """Store a line durably. Errors: OutboxFull; OSError if the disk fails."""
        with self.locked():
            self._count(len(line))
            segment, size = self._newest()
            segment.append(line, size)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the append lock, which all threads and processes share."""
        with self._mutex:
            lock = self._open_lock()
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
            finally:
                fcntl.flock(lock, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the files; the next append opens them again."""
        with self._mutex:
            if self._segment is not None:
                self._segment.close()
            if self._lock is not None:
                os.close(self._lock)
            self._lock = self._segment = None

    def _open_lock(self) -> int:
        """The lock's file; a new one in a forked process, or if the folder was made again."""
        if self._process != os.getpid():
            if self._lock is not None:
                os.close(self._lock)  # the parent's stays locked, if it is
            self._process, self._lock, self._segment = os.getpid(), None, None
        if self._lock is not None and not os.fstat(self._lock).st_nlink:
            os.close(self._lock)
            self._lock = None
        if self._lock is None:
            self._lock = os.open(self.folder / "append.lock", os.O_RDWR | os.O_CREAT, 0o600)
        return self._lock

    def _count(self, size: int) -> None:
        """Add `size` bytes to the count of the files. Errors: OutboxFull."""
        now = time.monotonic()
        if now >= self._counted_at + COUNT_EVERY_S or self._bytes + size > NEAR * self.most_bytes:
            self._bytes, self._counted_at = bytes_of(self.folder), now
        if self._bytes + size > self.most_bytes:
            raise OutboxFull(
                f"the outbox in {self.folder} has {self._bytes:,} bytes; nothing stored"
            )
        self._bytes += size

    def _newest(self) -> tuple[OpenFile, int]:
        """The segment to append to, and its size.

        The open one may be full by now, or deleted by the sender, which makes a newer one first.
        """
        if self._segment is not None:
            status = self._segment.status()
            if status.st_nlink and status.st_size < self.segment_bytes:
                return self._segment, status.st_size
            self._segment.close()
        self._segment = None
        number = max(segment_numbers(self.folder), default=1)
        path = segment_path(self.folder, number, ADDS)
        if path.exists() and path.stat().st_size >= self.segment_bytes:
            path = segment_path(self.folder, number + 1, ADDS)
        self._segment = OpenFile(path)
        return self._segment, self._segment.status().st_size


def _sync_folder(folder: Path) -> None:
    """Make a new file's name durable."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
