"""Files of the outbox.

The folder has numbered segments. `N.adds` has one line for each add: a CRC-32, a space and the add
as JSON. `N.ends` has one line for each add that the server has accepted or refused. Every process
appends to the newest segment, under the lock of `append.lock`. The process that holds `sender.lock`
sends, appends to `N.ends`, and deletes segments whose adds have all ended. `refused` keeps the adds
that the server refused, with the reason, for a person.

A line is complete once `append` returns. A process that is killed while it writes leaves a line
without a line break; the next append cuts it off. An end that is lost in a power failure does no
harm: the add is sent again with its Idempotency-Key, and the server answers with the same event.

`failing` has the tries of adds that got a 500, for the process that sends next. Without it they are
counted from the start.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from memlane_client.operations import Add
from memlane_client.outbox.folder import make_folder
from memlane_client.outbox.locks import LockFile
from memlane_client.outbox.segments import (
    ADDS,
    ENDS,
    SegmentWriter,
    append_line,
    bytes_of,
    segment_numbers,
    segment_path,
)

SEGMENT_BYTES = 1_000_000
# The first bytes of a segment have a CRC and a key, which no other segment has.
HEAD_BYTES = 64
# A finished segment stays this long, so that other processes read the ends of their adds.
GRACE_S = 60.0
# Of a failing add: time of its first 500, tries that count, and all tries.
Tries = tuple[float, int, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """An add in the journal: its segment, and the time when it was appended."""

    add: Add
    segment: int
    at: float


@dataclass(frozen=True, slots=True)
class End:
    """The end of an add: the event of an accepted one, or the reason of a refused one."""

    key: str
    event_id: str | None = None
    status: int | None = None
    reason: str | None = None


@dataclass(slots=True)
class Tail:
    """Reader of a growing file of lines; each read starts where the last one ended.

    A file with another beginning is another file: the folder was deleted and made again.
    """

    path: Path
    offset: int = 0
    damaged: int = 0
    _head: bytes = b""

    def read(self) -> list[dict[str, Any]]:
        """The complete lines since the last read. A line with a wrong CRC is counted, not read."""
        try:
            with self.path.open("rb") as file:
                if file.read(len(self._head)) != self._head:
                    self.offset = 0
                file.seek(self.offset)
                content = file.read()
        except FileNotFoundError:
            return []
        whole, line_break, _ = content.rpartition(b"\n")
        if not self.offset:
            self._head = whole[:HEAD_BYTES]
        self.offset += len(whole) + len(line_break)
        values = [decoded(line) for line in whole.split(b"\n") if line]
        self.damaged += values.count(None)
        return [value for value in values if value is not None]


def encoded(value: Mapping[str, Any]) -> bytes:
    """A value as a line of the journal."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def decoded(line: bytes) -> dict[str, Any] | None:
    """The value of a line; None if the line is damaged."""
    checksum, _, text = line.partition(b" ")
    try:
        value = json.loads(text) if int(checksum, 16) == zlib.crc32(text) else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _line(add: Add, at: float) -> bytes:
    return encoded({"key": add.key, "at": at, "body": add.body})


@dataclass(slots=True)
class Journal:
    """The files of one outbox. `most_bytes` bounds them together."""

    folder: Path
    most_bytes: int = 64_000_000
    segment_bytes: int = SEGMENT_BYTES
    _writer: SegmentWriter = field(init=False)
    _adds: dict[int, Tail] = field(default_factory=dict)
    _ends: dict[int, Tail] = field(default_factory=dict)
    _sender_lock: LockFile | None = None
    _failing: dict[str, Tries] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Create the folder; only the owner may read it, because it holds what users write."""
        self.folder = self.folder.expanduser()
        make_folder(self.folder)
        self._writer = SegmentWriter(self.folder, self.most_bytes, self.segment_bytes)

    def append(self, add: Add) -> None:
        """Store an add durably.

        Errors: OutboxFull; TypeError or ValueError for what is no JSON; OSError if the disk fails.
        """
        self._writer.append(add.key, _line(add, time.time()))

    def new_entries(self) -> list[Entry]:
        """The adds that were appended since the last call, oldest first; for the sender."""
        entries = []
        for number in segment_numbers(self.folder):
            tail = self._adds.setdefault(number, Tail(self._path(number, ADDS)))
            entries += [
                Entry(Add(value["body"], value["key"]), number, value["at"])
                for value in tail.read()
            ]
        return entries

    def pending(self) -> list[Entry]:
        """The adds that have not ended, oldest first; read from the start, in any process."""
        reader = Journal(self.folder)
        ended = {end.key for end in reader.new_ends()}
        entries = [entry for entry in reader.new_entries() if entry.add.key not in ended]
        ended = {end.key for end in reader.new_ends()}  # those that ended during the read
        return [entry for entry in entries if entry.add.key not in ended]

    def new_ends(self) -> list[End]:
        """The ends that were written since the last call."""
        ends = []
        for number in segment_numbers(self.folder):
            tail = self._ends.setdefault(number, Tail(self._path(number, ENDS)))
            ends += [End(**value) for value in tail.read()]
        for end in ends:
            self._writer.forget(end.key)
        return ends

    def finish(self, entry: Entry, end: End) -> None:
        """Record the end of an add; keep a refused one in `refused`."""
        values = asdict(end)
        if end.event_id is None:
            refused = values | {"at": time.time(), "body": entry.add.body}
            append_line(self.folder / "refused", encoded(refused))
        append_line(self._path(entry.segment, ENDS), encoded(values), durable=False)
        self._writer.forget(end.key)

    def refused(self) -> list[dict[str, Any]]:
        """The adds that the server refused, with status and reason."""
        return Tail(self.folder / "refused").read()

    def failing(self) -> dict[str, Tries]:
        """Tries of the adds that have failed, by key; none if the file is missing or damaged."""
        try:
            values = json.loads((self.folder / "failing").read_bytes())
            tries = {
                key: (float(first_at), int(tries), int(rounds))
                for key, (first_at, tries, rounds) in values.items()
            }
        except (OSError, ValueError, TypeError, AttributeError):
            tries = {}
        self._failing = tries
        return dict(tries)

    def keep_failing(self, tries: Mapping[str, Tries]) -> None:
        """Write the tries of the adds that have failed, if they have changed."""
        if tries == self._failing:
            return
        new = self.folder / "failing.new"
        new.touch(0o600)
        new.write_text(json.dumps(tries))
        new.replace(self.folder / "failing")
        self._failing = dict(tries)

    def drop_finished(self, pending: set[int]) -> None:
        """Delete segments without an add in `pending` whose last end is older than GRACE_S."""
        with self._writer.locked():
            if self.is_moved():
                return
            numbers = segment_numbers(self.folder)
            for number in numbers:
                adds, ends = self._path(number, ADDS), self._path(number, ENDS)
                read = self._adds[number].offset if number in self._adds else 0
                if number in pending or read < adds.stat().st_size or not ends.exists():
                    continue
                if time.time() - ends.stat().st_mtime < GRACE_S:
                    continue
                if number == numbers[-1]:  # numbers only grow, so that no reader mixes them up
                    append_line(self._path(number + 1, ADDS), b"")
                adds.unlink()
                ends.unlink()

    def become_sender(self) -> bool:
        """Take the sender's lock; True if this process has it."""
        if not self.sending:
            lock = LockFile(self.folder / "sender.lock")
            if not lock.try_lock():
                lock.close()
                return False
            self._sender_lock = lock
            self._adds.clear()
            self._ends.clear()
        return True

    @property
    def sending(self) -> bool:
        """True if this process holds the sender's lock."""
        return self._sender_lock is not None and self._sender_lock.is_open

    def resign(self) -> None:
        """Release the sender's lock."""
        if self._sender_lock is not None:
            self._sender_lock.close()
            self._sender_lock = None

    def is_moved(self) -> bool:
        """True if the folder was moved or deleted since this process opened it."""
        lock = self._sender_lock
        is_sender_moved = lock is not None and lock.is_open and not lock.is_current()
        return is_sender_moved or self._writer.is_moved()

    def restore(self, pending: Iterable[Entry]) -> None:
        """Make a moved or deleted folder again, with the adds that have not ended.

        `pending`: those of all processes that the sender has read; this process knows its own.
        """
        self.resign()
        self._writer.restore({entry.add.key: _line(entry.add, entry.at) for entry in pending})

    def close(self) -> None:
        """Close the files that appends keep open."""
        self._writer.close()

    def size_bytes(self) -> int:
        """Bytes of all files."""
        return bytes_of(self.folder)

    @property
    def damaged(self) -> int:
        """Number of lines with a wrong CRC."""
        return sum(tail.damaged for tail in self._adds.values())

    def _path(self, number: int, suffix: str) -> Path:
        return segment_path(self.folder, number, suffix)
