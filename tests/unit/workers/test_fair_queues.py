"""The queue of a hint, by the number of the project's busy lanes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.fair_queues import (
    LOW_QUEUES,
    NORMAL_QUEUES,
    QUEUES,
    RECHECK_S,
    TAKES,
    LowGate,
    TakeOrder,
    of_priority,
    queue_of,
)


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
    assert queue_of(busy_lanes, low=True) == queue.replace("lane", "low")


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_who_is_busier_never_stands_before_who_is_less(first: int, second: int) -> None:
    few, many = sorted((first, second))
    assert QUEUES.index(queue_of(few)) <= QUEUES.index(queue_of(many))


@pytest.mark.parametrize("queue", QUEUES)
def test_a_change_of_priority_keeps_the_number_of_busy_lanes(queue: str) -> None:
    assert of_priority(queue, low=True) == queue.replace("lane", "low")
    assert of_priority(queue, low=False) == queue.replace("low", "lane")


def test_queues_of_one_priority_take_turns() -> None:
    order = TakeOrder(lambda: True)
    order.update(QUEUES)
    order.rotate(NORMAL_QUEUES[0])
    assert order.consume(8) == [*NORMAL_QUEUES[1:], NORMAL_QUEUES[0], *LOW_QUEUES]
    order.rotate(LOW_QUEUES[0])
    assert order.consume(8)[4:] == [*LOW_QUEUES[1:], LOW_QUEUES[0]]


def test_low_priority_comes_first_after_nine_other_hints() -> None:
    order = TakeOrder(lambda: True)
    order.update(QUEUES)
    for _ in range(TAKES - 1):
        assert order.consume(8)[0] in NORMAL_QUEUES
        order.rotate(NORMAL_QUEUES[0])
    assert order.consume(8)[:4] == [*LOW_QUEUES]
    order.rotate(LOW_QUEUES[0])
    assert order.consume(8)[0] in NORMAL_QUEUES


def test_low_priority_is_left_out_while_its_places_are_taken() -> None:
    order = TakeOrder(lambda: False)
    order.update(QUEUES)
    assert order.consume(8) == [*NORMAL_QUEUES]
    assert order.restricted


def test_the_gate_for_low_priority_is_open_while_no_other_hints_arrive() -> None:
    clock = [0.0]
    gate = LowGate(lambda: True, lambda: clock[0])
    assert gate.is_open()
    gate.took(NORMAL_QUEUES[0])
    assert not gate.is_open()
    clock[0] += RECHECK_S
    assert gate.is_open()


def test_the_gate_for_low_priority_opens_for_one_hint_after_nine_others() -> None:
    gate = LowGate(lambda: True, lambda: 0.0)
    for _ in range(TAKES - 1):
        gate.took(NORMAL_QUEUES[0])
        opened = gate.is_open()
    assert opened
    gate.took(NORMAL_QUEUES[1])
    assert gate.is_open()
    gate.took(LOW_QUEUES[0])
    assert not gate.is_open()


def test_the_gate_for_low_priority_is_closed_while_its_places_are_taken() -> None:
    assert not LowGate(lambda: False).is_open()
