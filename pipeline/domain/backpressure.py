"""Admission control: accept or refuse an add before anything is written.

There is a limit on the waiting events of a scope, on those of a project, and on the server's lag at
the measured drain rate. A refusal carries a retry time: the excess divided by the drain rate. The
rate is believed once a backlog has lasted a while: the first events of a burst take as long as all
stages of one, and then many end at once.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from pipeline.domain.errors import Overloaded
from pipeline.domain.lanes import LaneClass
from pipeline.domain.scope import Scope

SOONEST_S, LATEST_S = 1, 120
# A backlog is measured for this long, or for the limit of the lag, before an add is refused for it.
# By the first 10 s, a server was 3,790 s behind, and ended all of it within 330 s.
MEASURED_FOR_S = 60.0
# Fewer ends in that time are no rate: the workers may have restarted in it. Then the age of the
# oldest event tells the lag, as without any.
FEWEST_ENDS = 10
# Adds of low priority may use half of the limits of their scope and project: the other half is
# always left for adds of normal priority.
LOW_HALF = 2


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum number of waiting events per scope and per project, and maximum server lag."""

    scope_events: int
    project_events: int
    lag_s: float

    def of_low(self) -> Limits:
        """The limits of adds of low priority."""
        scope_events = max(1, self.scope_events // LOW_HALF)
        return Limits(scope_events, max(1, self.project_events // LOW_HALF), self.lag_s)


@dataclass(frozen=True, slots=True)
class Load:
    """Snapshot of the backlog, about a second old.

    `projects`: waiting events of each project. `deep`: depth of each lane over the scope limit of
    adds of low priority. `lanes`: lanes of each class that are not idle, replays included.
    `ready`: events that can run now; those parked by an outage, and those of low priority, are not
    counted.
    `backlogged`: there was ready work during the whole window in which `drained_per_s` was
    measured, so the rate is the workers' capacity and not just the demand.
    `oldest_s`: age of the oldest ready event, for the case that nothing drains.
    """

    projects: Mapping[UUID, int] = field(default_factory=dict)
    deep: Mapping[UUID, int] = field(default_factory=dict)
    lanes: Mapping[LaneClass, int] = field(default_factory=dict)
    ready: int = 0
    drained_per_s: float = 0.0
    backlogged: bool = False
    oldest_s: float = 0.0

    @property
    def lag_s(self) -> float:
        """Seconds until the ready events are done, at the measured rate.

        0 without a backlog: after a quiet period the measured rate is low, but not the capacity.
        The age of the oldest ready event if nothing drains.
        """
        if not self.backlogged:
            return 0.0
        return self.ready / self.drained_per_s if self.drained_per_s else self.oldest_s


@dataclass(slots=True)
class Backlog:
    """The rate of a backlog: its mean over the looks at it, of the last MEASURED_FOR_S."""

    lag_s: float
    _began: float | None = None
    _rates: deque[tuple[float, float]] = field(default_factory=deque)

    def follow(self, load: Load, now: float) -> Load:
        """Return the load with the mean rate; without a backlog until it has lasted long enough.

        `now`: time of the look, by any clock.
        """
        if not load.backlogged:
            self._began = None
            self._rates.clear()
            return load
        began = self._began = now if self._began is None else self._began
        self._rates.append((now, load.drained_per_s))
        while self._rates[0][0] < now - MEASURED_FOR_S:
            self._rates.popleft()
        mean = sum(rate for _, rate in self._rates) / len(self._rates)
        rate = mean if mean * MEASURED_FOR_S >= FEWEST_ENDS else 0.0
        has_lasted = now - began >= min(MEASURED_FOR_S, self.lag_s)
        return replace(load, drained_per_s=rate, backlogged=has_lasted)


def admit(scope: Scope, load: Load, limits: Limits, *, low: bool = False) -> None:
    """Refuse an add that exceeds the limit of its scope, its project or the server.

    `low`: the add has low priority. Errors: Overloaded, with the limit that was exceeded and the
    time to retry after.
    """
    limits = limits.of_low() if low else limits
    depth = load.deep.get(scope.lane_id, 0)
    if depth >= limits.scope_events:
        per_lane = load.drained_per_s / max(sum(load.lanes.values()), 1)
        after = retry_after_s(depth - limits.scope_events, per_lane)
        raise Overloaded(
            f"{depth} events of this user, agent, app and run wait already.", retry_after_s=after
        )
    waiting = load.projects.get(scope.project_id, 0)
    if waiting >= limits.project_events:
        after = retry_after_s(waiting - limits.project_events, load.drained_per_s)
        raise Overloaded(f"{waiting} events of this project wait already.", retry_after_s=after)
    if load.lag_s > limits.lag_s:
        excess = (load.lag_s - limits.lag_s) * load.drained_per_s
        raise Overloaded(
            f"The server is {load.lag_s:.0f} s behind.",
            retry_after_s=retry_after_s(excess, load.drained_per_s),
            server_wide=True,
        )


def retry_after_s(excess: float, per_s: float) -> int:
    """Seconds until `excess` events are done at `per_s` events per second, from 1 to 120."""
    seconds = (excess + 1) / per_s if per_s > 0 else LATEST_S
    return math.ceil(max(SOONEST_S, min(LATEST_S, seconds)))
