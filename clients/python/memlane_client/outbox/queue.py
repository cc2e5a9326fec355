"""Order of the adds and waits between attempts. No files, no network: the clock is an argument."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from memlane_client.calls import Retries
from memlane_client.outbox.journal import Entry

LANES = 16
# An outage is probed at most this often; the wait grows up to it.
PROBES = Retries(first_s=0.25, longest_s=30.0)
# A wrong key or URL is changed by a person.
BLOCKED_S = 30.0


@dataclass(slots=True)
class DeliveryQueue:
    """Adds that the server has not accepted. The oldest of each scope may be sent.

    After a failure everything waits, because the server failed, not the add.
    """

    retries: Retries = PROBES
    lanes: dict[str, deque[Entry]] = field(default_factory=dict)
    blocked: str | None = None
    _failures: int = 0
    _next_at: float = 0.0

    def extend(self, entries: Iterable[Entry]) -> None:
        """Append adds, oldest first."""
        for entry in entries:
            self.lanes.setdefault(entry.add.lane, deque()).append(entry)

    def ready(self, now: float) -> list[Entry]:
        """The adds to send now, each of another scope; after a failure only one."""
        if now < self._next_at:
            return []
        width = 1 if self._failures else LANES
        heads = sorted((lane[0] for lane in self.lanes.values()), key=lambda entry: entry.at)
        return heads[:width]

    def finish(self, entry: Entry) -> None:
        """Remove an add that the server accepted or refused: the server is up."""
        lane = self.lanes[entry.add.lane]
        lane.popleft()
        if not lane:
            del self.lanes[entry.add.lane]
        self._failures, self._next_at, self.blocked = 0, 0.0, None

    def fail(self, now: float, reason: str, *, pause_s: float | None = None) -> None:
        """Wait before the next attempt. `pause_s`: the server's Retry-After."""
        self._failures += 1
        self._next_at = now + self.retries.pause_s(self._failures, pause_s)
        self.blocked = reason

    def block(self, now: float, reason: str) -> None:
        """Wait for a person: the API key or the URL is wrong."""
        self.fail(now, reason, pause_s=BLOCKED_S)

    def pause_s(self, now: float) -> float | None:
        """Seconds until the next attempt; None if there is nothing to send."""
        return max(0.0, self._next_at - now) if self.lanes else None

    def entries(self) -> list[Entry]:
        """The pending adds, oldest first within each scope."""
        return [entry for lane in self.lanes.values() for entry in lane]

    def segments(self) -> set[int]:
        """Segments of the pending adds."""
        return {entry.segment for entry in self.entries()}

    def oldest_at(self) -> float | None:
        """Time when the oldest pending add was appended."""
        return min((lane[0].at for lane in self.lanes.values()), default=None)

    def __len__(self) -> int:
        return sum(map(len, self.lanes.values()))
