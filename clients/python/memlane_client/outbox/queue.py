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
# Tries of an add that alone gets a 500, in about six minutes.
MOST_TRIES = 10
TRIES_OF_ONE = Retries(first_s=1.0, longest_s=300.0)
# Adds of the same scope that are tried right after one that failed: is the server at fault?
MOST_FOLLOWERS = 8


@dataclass(slots=True)
class FailingAdd:
    """The oldest add of a scope, after a 500. `tries`: those between which others were accepted.

    `accepted`: number of accepted adds of the queue at its last try. `rounds`: all its tries.
    """

    reason: str
    next_at: float
    accepted: int
    tries: int = 1
    rounds: int = 0


@dataclass(slots=True)
class DeliveryQueue:
    """Adds that the server has not accepted. The oldest of each scope may be sent.

    After a failure everything waits, because the server failed, not the add. After a 500 the add's
    scope waits longer, because the add may be the cause.
    """

    retries: Retries = PROBES
    lanes: dict[str, deque[Entry]] = field(default_factory=dict)
    blocked: str | None = None
    _failures: int = 0
    _next_at: float = 0.0
    _accepted: int = 0
    _failing: dict[str, FailingAdd] = field(default_factory=dict)

    def extend(self, entries: Iterable[Entry]) -> None:
        """Append adds, oldest first."""
        for entry in entries:
            self.lanes.setdefault(entry.add.lane, deque()).append(entry)

    def ready(self, now: float) -> list[Entry]:
        """The adds to send now, each of another scope; after a failure only one."""
        if now < self._next_at:
            return []
        width = 1 if self._failures else LANES
        due = (lane[0] for name, lane in self.lanes.items() if self._due_at(name) <= now)
        return sorted(due, key=lambda entry: entry.at)[:width]

    def finish(self, entry: Entry, *, accepted: bool) -> None:
        """Remove an add that the server accepted or refused: the server is up."""
        lane = self.lanes[entry.add.lane]
        if lane[0] is entry:
            self._failing.pop(entry.add.lane, None)
        lane.remove(entry)
        if not lane:
            del self.lanes[entry.add.lane]
        self._accepted += accepted
        self._failures, self._next_at = 0, 0.0
        self.blocked = next((failing.reason for failing in self._failing.values()), None)

    def fail_one(self, entry: Entry, now: float, reason: str) -> bool:
        """Wait after a 500. True if the add has had all its tries.

        A try counts only if the server has accepted another add since the one before: a server that
        fails for every add says nothing about this one.
        """
        self.fail(now, reason)
        failing = self._failing.get(entry.add.lane)
        if failing is None:
            failing = self._failing[entry.add.lane] = FailingAdd(reason, now, self._accepted)
        elif failing.accepted < self._accepted:
            failing.tries, failing.accepted = failing.tries + 1, self._accepted
        failing.rounds += 1
        failing.next_at = now + TRIES_OF_ONE.pause_s(failing.tries)
        return failing.tries >= MOST_TRIES

    def followers(self, entry: Entry) -> list[Entry]:
        """Adds of the scope to try right after the oldest one got a 500, until one is accepted.

        None for the first tries, then one more after each MOST_TRIES, so that each add before the
        last one has had as many. An accepted one shows that the server works and that those before
        are at fault. Otherwise the server may fail for every add, and all of them stay in order.
        """
        lane = self.lanes[entry.add.lane]
        count = min(self._failing[entry.add.lane].rounds // MOST_TRIES, MOST_FOLLOWERS)
        return list(lane)[1 : count + 1]

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
        if not self.lanes:
            return None
        return max(0.0, self._next_at - now, min(map(self._due_at, self.lanes)) - now)

    def entries(self) -> list[Entry]:
        """The pending adds, oldest first within each scope."""
        return [entry for lane in self.lanes.values() for entry in lane]

    def segments(self) -> set[int]:
        """Segments of the pending adds."""
        return {entry.segment for entry in self.entries()}

    def _due_at(self, name: str) -> float:
        """Time of the next try of a scope's oldest add; 0 unless the last one got a 500."""
        failing = self._failing.get(name)
        return 0.0 if failing is None else failing.next_at

    def __len__(self) -> int:
        return sum(map(len, self.lanes.values()))
