"""The queue of a hint, by the number of the project's busy lanes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.queues import QUEUES, queue_of


@pytest.mark.parametrize(
    ("busy_lanes", "queue"),
    [
        (0, "mem.lane"),
        (10, "mem.lane"),
        (11, "mem.lane.10"),
        (100, "mem.lane.10"),
        (101, "mem.lane.100"),
        (1_001, "mem.lane.1000"),
    ],
)
def test_a_hint_stands_with_those_of_projects_as_busy(busy_lanes: int, queue: str) -> None:
    assert queue_of(busy_lanes) == queue


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_who_is_busier_never_stands_before_who_is_less(first: int, second: int) -> None:
    few, many = sorted((first, second))
    assert QUEUES.index(queue_of(few)) <= QUEUES.index(queue_of(many))
