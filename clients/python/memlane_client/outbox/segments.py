"""Durable appends to the files of an outbox, which several processes share.

The newest segment and the lock stay open between appends. Each system call lets another thread take
the interpreter, for milliseconds if that thread computes; so an append makes few of them: lock,
look, write, sync, look again and unlock.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from memlane_client.errors import OutboxFull
from memlane_client.outbox.folder import sync_folder
from memlane_client.outbox.locks import LockFile, reset_in_child

ADDS, ENDS = ".adds", ".ends"
# Other processes append as well, so the files are counted this often, and near the bound each time.
COUNT_EVERY_S = 1.0
NEAR = 0.9
# An append begins again if the folder was moved since it began; it is not moved this often.
MOVES = 10


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
    """A file of lines, open for appends. `broken`: a sync of it has failed."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        """Open the file, and create it if it is missing; only its owner may read it.

        The name of a durable one is synced also if the file exists, because the process that
        created it may have failed to. Errors: OSError.
        """
        self._path = path
        self.broken = False
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        # Size after the last append; None if the last line may be incomplete.
        self._end: int | None = None
        if durable:
            self._sync_name()

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
            self._sync()
        self._end = size + len(line)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _sync(self) -> None:
        try:
            getattr(os, "fdatasync", os.fsync)(self._file)  # macOS has no fdatasync
        except OSError:
            self.broken = True
            raise

    def _sync_name(self) -> None:
        try:
            sync_folder(self._path.parent)
        except OSError:
            self.close()
            raise

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
    file = OpenFile(path, durable=durable)
    try:
        file.append(line, file.status().st_size, durable=durable)
    finally:
        file.close()


@dataclass(slots=True, eq=False, weakref_slot=True)
class SegmentWriter:
    """Appends lines to the newest segment. A full one, of `segment_bytes`, is followed by another.

    `most_bytes` bounds all files of the folder; while they are far below it, what other processes
    append counts within a second.

    If the folder is moved or deleted, it is made again, with the lines of this process whose adds
    have not ended.
    """

    folder: Path
    most_bytes: int
    segment_bytes: int
    _mutex: threading.Lock = field(default_factory=threading.Lock)
    _lock: LockFile | None = None
    _segment: OpenFile | None = None
    # Lines by the keys of their adds, in order, until `forget`.
    _lines: dict[str, bytes] = field(default_factory=dict)
    _is_lost: bool = False
    _bytes: int = 0
    _counted_at: float = float("-inf")

    def __post_init__(self) -> None:
        """Let each forked child open files of its own."""
        reset_in_child(self)

    def append(self, key: str, line: bytes) -> None:
        """Store the line of an add durably. Errors: OutboxFull; OSError if the disk fails."""
        with self._mutex:
            is_new = key not in self._lines
            try:
                self._append(key, line)
            except (OSError, OutboxFull):
                if is_new:
                    self.forget(key)
                raise

    def forget(self, key: str) -> None:
        """Drop the line of an add that has ended."""
        self._lines.pop(key, None)

    def is_moved(self) -> bool:
        """True if the folder was moved or deleted, until it has the lines of this process again."""
        lock = self._lock
        return self._is_lost or (lock is not None and lock.is_open and not lock.is_current())

    def restore(self, others: Mapping[str, bytes]) -> None:
        """Make the folder again, with the lines that were in it.

        `others`: lines of other processes by key, older than those of this one.
        """
        with self._mutex:
            self._lines = {**others, **self._lines}
            self._is_lost = True
            with self._hold():
                pass

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the append lock, which all threads and processes share."""
        with self._mutex, self._hold():
            yield

    def close(self) -> None:
        """Close the files; the next append opens them again."""
        with self._mutex:
            self._close()

    def after_fork(self) -> None:
        """Open other files in a forked child. What the parent has appended is the parent's."""
        self._mutex = threading.Lock()
        self._lines, self._is_lost = {}, False
        self._close()

    def _close(self) -> None:
        # A child that is forked in between closes neither of them again.
        segment, lock = self._segment, self._lock
        self._lock = self._segment = None
        if segment is not None:
            segment.close()
        if lock is not None:
            lock.close()

    def _append(self, key: str, line: bytes) -> None:
        """Store the line in the folder that the path leads to at the end."""
        for _ in range(MOVES):
            with self._hold() as lock:
                self._count(len(line))
                self._lines[key] = line  # before another thread reads and sends it
                self._store(line)
                if lock.is_current():
                    return
        raise OSError(f"{self.folder}: the folder is moved again and again; nothing stored")

    @contextmanager
    def _hold(self) -> Iterator[LockFile]:
        """Hold the append lock of the folder, which has all lines of this process then."""
        lock = self._locked_file()
        try:
            if self._is_lost:
                self._write_again()
            yield lock
        finally:
            lock.unlock()

    def _locked_file(self) -> LockFile:
        """The locked file of the append lock; a new one if the folder was moved or deleted."""
        while True:
            if self._lock is None:
                self._lock = LockFile(self.folder / "append.lock")
            self._lock.lock()
            if self._lock.is_current():
                return self._lock
            self._close()
            self._is_lost = True

    def _write_again(self) -> None:
        """Store the lines of all adds that have not ended, in blocks of a segment."""
        self._counted_at = float("-inf")
        block = bytearray()
        for line in list(self._lines.values()):
            block += line
            if len(block) >= self.segment_bytes:
                self._store(bytes(block))
                block.clear()
        if block:
            self._store(bytes(block))
        self._is_lost = False

    def _store(self, lines: bytes) -> None:
        segment, size = self._newest()
        segment.append(lines, size)

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
        After a failed sync the disk may lack a part of it, so another one follows.
        """
        old, is_broken = self._segment, False
        if old is not None:
            status, is_broken = old.status(), old.broken
            if status.st_nlink and status.st_size < self.segment_bytes and not is_broken:
                return old, status.st_size
        number = max(segment_numbers(self.folder), default=1)
        path = segment_path(self.folder, number, ADDS)
        if path.exists() and (is_broken or path.stat().st_size >= self.segment_bytes):
            path = segment_path(self.folder, number + 1, ADDS)
        self._segment = OpenFile(path)
        if old is not None:
            old.close()
        return self._segment, self._segment.status().st_size
