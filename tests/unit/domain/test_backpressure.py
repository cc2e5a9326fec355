"""Admission control as a pure function of the backlog."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.backpressure import (
    LATEST_S,
    SOONEST_S,
    Backlog,
    Limits,
    Load,
    admit,
    retry_after_s,
)
from pipeline.domain.errors import Overloaded
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId

MAYA = Scope(ProjectId(UUID(int=1)), user_id="maya")
JON = Scope(ProjectId(UUID(int=2)), user_id="jon")
LIMITS = Limits(scope_events=10, project_events=100, lag_s=60)


def refused(load: Load) -> Overloaded:
    with pytest.raises(Overloaded) as caught:
        admit(MAYA, load, LIMITS)
    return caught.value


def test_an_idle_server_accepts_an_add() -> None:
    admit(MAYA, Load(), LIMITS)


def test_a_scope_at_its_limit_gets_the_time_until_its_lane_has_drained() -> None:
    error = refused(
        Load(deep={MAYA.lane_id: 14}, lanes={(MAYA.project_id, False): 2}, drained_per_s=2)
    )
    assert error.retry_after_s == 5  # 5 events over the limit; the lane gets half of 2 events/s
    assert not error.server_wide


def test_a_deep_lane_does_not_block_another_scope() -> None:
    admit(Scope(ProjectId(UUID(int=1)), user_id="jon"), Load(deep={MAYA.lane_id: 14}), LIMITS)


def test_a_project_at_its_limit_does_not_block_another_project() -> None:
    load = Load(projects={MAYA.project_id: 120}, drained_per_s=10)
    assert refused(load).retry_after_s == 3
    admit(Scope(ProjectId(UUID(int=2)), user_id="maya"), load, LIMITS)


def test_lag_is_a_server_wide_refusal() -> None:
    error = refused(Load(ready=700, drained_per_s=10, backlogged=True))
    assert error.server_wide
    assert error.retry_after_s == 11


def test_without_any_drain_the_lag_is_the_age_of_the_oldest_event() -> None:
    error = refused(Load(ready=5, backlogged=True, oldest_s=61))
    assert (error.server_wide, error.retry_after_s) == (True, LATEST_S)
    admit(MAYA, Load(ready=70_000, backlogged=True, oldest_s=59), LIMITS)  # the workers restart


def test_a_burst_after_a_quiet_period_is_accepted() -> None:
    admit(MAYA, Load(ready=70_000, drained_per_s=0.1), LIMITS)


def looks(backlog: Backlog, first_s: int, last_s: int, load: Load) -> Load:
    """The load after a look a second."""
    for now in range(first_s, last_s):
        backlog.follow(load, now)
    return backlog.follow(load, last_s)


def test_the_first_ends_of_a_burst_refuse_no_add() -> None:
    """With a model of 12 s, one of 400 events has ended after 12 s, and 100 after 13."""
    backlog, waits = Backlog(lag_s=60), Load(ready=400, backlogged=True)
    looks(backlog, 0, 11, waits)
    admit(MAYA, backlog.follow(replace(waits, drained_per_s=0.1), 12), LIMITS)
    admit(MAYA, backlog.follow(replace(waits, ready=300, drained_per_s=10), 13), LIMITS)


def test_a_server_that_stays_behind_refuses_adds() -> None:
    behind = Load(ready=700, drained_per_s=10, backlogged=True)
    backlog = Backlog(lag_s=LIMITS.lag_s)
    admit(MAYA, looks(backlog, 0, 59, behind), LIMITS)
    assert refused(backlog.follow(behind, 60)).server_wide
    one_slow_look = backlog.follow(replace(behind, ready=500, drained_per_s=0.1), 61)
    admit(MAYA, one_slow_look, LIMITS)
    assert refused(looks(backlog, 62, 130, replace(behind, ready=500, drained_per_s=1))).server_wide
    caught_up = backlog.follow(Load(), 131)
    admit(MAYA, caught_up, LIMITS)
    admit(MAYA, looks(backlog, 132, 190, behind), LIMITS)


def test_a_restart_of_the_workers_refuses_no_add() -> None:
    """Two of 100 events have ended within a minute: 50 minutes of work, by that."""
    backlog, waits = Backlog(lag_s=LIMITS.lag_s), Load(ready=100, backlogged=True, oldest_s=50)
    looks(backlog, 0, 60, waits)
    restarted = looks(backlog, 61, 70, replace(waits, drained_per_s=0.2, oldest_s=0))
    admit(MAYA, restarted, LIMITS)
    assert refused(backlog.follow(replace(waits, oldest_s=61), 71)).server_wide


def test_a_short_limit_needs_no_longer_look() -> None:
    backlog = Backlog(lag_s=0.1)
    behind = Load(ready=700, drained_per_s=10, backlogged=True)
    with pytest.raises(Overloaded):
        admit(MAYA, looks(backlog, 0, 1, behind), replace(LIMITS, lag_s=0.1))


def test_events_parked_by_an_outage_are_no_lag() -> None:
    admit(MAYA, Load(projects={MAYA.project_id: 99}, ready=0, drained_per_s=0), LIMITS)


@given(st.floats(0, 1e9), st.floats(0, 1e6))
def test_the_retry_time_is_a_whole_number_within_bounds(excess: float, per_s: float) -> None:
    assert SOONEST_S <= retry_after_s(excess, per_s) <= LATEST_S
    assert isinstance(retry_after_s(excess, per_s), int)


def test_low_priority_is_refused_at_half_of_the_limits() -> None:
    load = Load(projects={MAYA.project_id: 50}, deep={JON.lane_id: 5}, drained_per_s=10)
    admit(MAYA, load, LIMITS)
    admit(JON, load, LIMITS)
    for scope, waits in ((MAYA, "50 events of this project"), (JON, "5 events of this user")):
        with pytest.raises(Overloaded, match=waits):
            admit(scope, load, LIMITS, low=True)
    admit(MAYA, Load(projects={MAYA.project_id: 49}), LIMITS, low=True)
