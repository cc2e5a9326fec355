"""Order of the adds and waits between attempts. No files, no network: the clock is an argument."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from memlane_client.calls import Retries
from memlane_client.outbox.journal import Entry, Tries

LANES = 16
# An outage is probed at most this often; the wait grows up to it.
PROBES = Retries(first_s=0.25, longest_s=30.0)
# A wrong key or URL is changed by a person.
BLOCKED_S = 30.0
# Tries of an add that alone gets a 500, in about six minutes.
MOST_TRIES = 10
TRIES_OF_ONE = Retries(first_s=1.0, longest_s=300.0)
# An add that gets a 500 this long after its first one is set aside, even if nothing was accepted
# that shows its fault.
GIVE_UP_S = 7 * 86_400.0


@dataclass(slots=True)
class FailingAdd:
    """An add after a 500. `tries`: those between which others were accepted.

    `first_at`: time of its first 500, by the wall clock. `tried_at`: that of its last try, by the
    queue's clock. `accepted`: number of accepted adds of the queue then. `rounds`: all its tries,
    up to MOST_TRIES.
    """

    first_at: float
    tries: int = 1
    rounds: int = 0
    accepted: int = 0
    reason: str = ""
    tried_at: float = -math.inf
    next_at: float = 0.0


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
    # By the key of the add.
    _failing: dict[str, FailingAdd] = field(default_factory=dict)

    def extend(self, entries: Iterable[Entry]) -> None:
        """Append adds, oldest first."""
        for entry in entries:
            self.lanes.setdefault(entry.add.lane, deque()).append(entry)

    def ready(self, now: float) -> list[Entry]:
        """The adds to send now, each of another scope; after a failure only one.

        Adds that have failed come behind the others, so that these do not wait for them.
        """
        if now < self._next_at:
            return []
        width = 1 if self._failures else LANES
        due = (lane[0] for name, lane in self.lanes.items() if self._due_at(name) <= now)
        return sorted(due, key=self._turn)[:width]

    def finish(self, entry: Entry, *, accepted: bool) -> None:
        """Remove an add that the server accepted or refused: the server is up."""
        lane = self.lanes[entry.add.lane]
        self._failing.pop(entry.add.key, None)
        lane.remove(entry)
        if not lane:
            del self.lanes[entry.add.lane]
        self._accepted += accepted
        self._failures, self._next_at = 0, 0.0
        self.blocked = self._reason()

    def fail_one(self, entry: Entry, now: float, reason: str, *, wall_s: float) -> bool:
        """Wait after a 500 of the oldest add. True if it has had all its tries, or its time.

        A try counts only if the server has accepted another add since the one before: a server that
        fails for every add says nothing about this one. `wall_s`: time of the wall clock.
        """
        self.fail(now, reason)
        failing = self.note(entry, now, reason, wall_s=wall_s)
        failing.next_at = now + TRIES_OF_ONE.pause_s(failing.tries)
        return failing.tries >= MOST_TRIES or wall_s - failing.first_at >= GIVE_UP_S

    def note(self, entry: Entry, now: float, reason: str, *, wall_s: float) -> FailingAdd:
        """Count a 500 of an add."""
        failing = self._failing.get(entry.add.key)
        if failing is None:
            failing = self._failing[entry.add.key] = FailingAdd(wall_s, accepted=self._accepted)
        elif failing.accepted < self._accepted:
            failing.tries, failing.accepted = failing.tries + 1, self._accepted
        failing.rounds = min(failing.rounds + 1, MOST_TRIES)
        failing.reason, failing.tried_at = reason, now
        return failing

    def follower(self, entry: Entry) -> Entry | None:
        """The add of the scope to try right after the oldest one got a 500.

        It is the first one that has not had MOST_TRIES; so each add before it has. If it is
        accepted, the server works, and those before it may be at fault. Otherwise the server may
        fail for every add, and all of them stay in order.
        """
        for add in self.lanes[entry.add.lane]:
            failing = self._failing.get(add.add.key)
            if failing is None or failing.rounds < MOST_TRIES:
                return None if add is entry else add
        return None

    def before(self, entry: Entry) -> list[Entry]:
        """The adds of the scope that are older than this one."""
        lane = self.lanes[entry.add.lane]
        return list(itertools.takewhile(lambda older: older is not entry, lane))

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

    def tries(self) -> dict[str, Tries]:
        """Tries of each add that has failed, by its key."""
        return {key: (add.first_at, add.tries, add.rounds) for key, add in self._failing.items()}

    def resume(self, tries: Mapping[str, Tries]) -> None:
        """Go on with the tries of an earlier process."""
        for entry in self.entries():
            if (before := tries.get(entry.add.key)) is not None:
                self._failing[entry.add.key] = FailingAdd(*before)

    def entries(self) -> list[Entry]:
        """The pending adds, oldest first within each scope."""
        return [entry for lane in self.lanes.values() for entry in lane]

    def _due_at(self, name: str) -> float:
        """Time of the next try of a scope's oldest add; 0 unless the last one got a 500."""
        failing = self._failing.get(self.lanes[name][0].add.key)
        return 0.0 if failing is None else failing.next_at

    def _turn(self, entry: Entry) -> tuple[float, float]:
        """Order of the adds that are due: by the last try, and those without one by age."""
        failing = self._failing.get(entry.add.key)
        return (-math.inf if failing is None else failing.tried_at), entry.at

    def _reason(self) -> str | None:
        """Reason for which a scope waits."""
        oldest = (self._failing.get(lane[0].add.key) for lane in self.lanes.values())
        return next((failing.reason for failing in oldest if failing is not None), None)

    def __len__(self) -> int:
        return sum(map(len, self.lanes.values()))
