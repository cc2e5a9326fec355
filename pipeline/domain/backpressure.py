"""Back-pressure: whether one more add may come in, decided before it is written.

Limits are on what waits, per scope, per project and in all, and on how long that would take at the
rate measured. A refusal says when to come back: the excess over the drain rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from pipeline.domain.errors import Overloaded
from pipeline.domain.scope import Scope

SOONEST_S, LATEST_S = 1, 120


@dataclass(frozen=True, slots=True)
class Limits:
    """Events waiting: of one scope, of one project; and seconds of work waiting in all."""

    scope_events: int
    project_events: int
    lag_s: float


@dataclass(frozen=True, slots=True)
class Load:
    """What waits, as of about a second ago.

    `ready` leaves out what is parked by an outage: that is no work for anybody yet.
    `deep` names the lanes over the scope limit; `lanes` counts each project's that are not idle,
    with those of its replays.
    `backlogged`: there was ready work all the time that `drained_per_s` was measured over, so it
    tells what the workers can do and not only what they were asked for.
    """

    projects: Mapping[UUID, int] = field(default_factory=dict)
    deep: Mapping[UUID, int] = field(default_factory=dict)
    lanes: Mapping[UUID, int] = field(default_factory=dict)
    ready: int = 0
    drained_per_s: float = 0.0
    backlogged: bool = False
    # The age of the oldest ready event; known where nothing drains.
    oldest_s: float = 0.0

    @property
    def busy_lanes(self) -> int:
        return sum(self.lanes.values())

    @property
    def lag_s(self) -> float:
        """Seconds until what is ready now is done; 0 without a backlog: a burst is not slow work
        because little was asked for before it. Where nothing drains, the age of the oldest event.
        """
        if not self.backlogged:
            return 0.0
        return self.ready / self.drained_per_s if self.drained_per_s else self.oldest_s


def admit(scope: Scope, load: Load, limits: Limits) -> None:
    """Errors: Overloaded, with whose limit it is and when to come back."""
    depth = load.deep.get(scope.lane_id, 0)
    if depth >= limits.scope_events:
        per_lane = load.drained_per_s / max(load.busy_lanes, 1)
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
            everybody=True,
        )


def retry_after_s(excess: float, per_s: float) -> int:
    """Whole seconds until the excess is worked off, 1 to 120."""
    seconds = (excess + 1) / per_s if per_s > 0 else LATEST_S
    return math.ceil(max(SOONEST_S, min(LATEST_S, seconds)))
