"""Backoff of a lane during a provider's outage, and the estimated tokens of a turn."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.messages import Message, Role
from pipeline.ingest.add import estimated_tokens
from pipeline.ingest.retry import FIRST_WAIT_S, JITTER, LONGEST_WAIT_S, wait_s
from pipeline.text.tokens import tokens


def middle(low: float, high: float) -> float:
    return (low + high) / 2


def lowest(low: float, high: float) -> float:
    return low


def highest(low: float, high: float) -> float:
    return high


def test_waits_double_from_the_first_to_the_longest() -> None:
    waits = [wait_s(n, None, jitter=middle) for n in range(20)]
    assert waits[:4] == [FIRST_WAIT_S, 2 * FIRST_WAIT_S, 4 * FIRST_WAIT_S, 8 * FIRST_WAIT_S]
    assert waits[-1] == LONGEST_WAIT_S
    assert all(later in (2 * wait, LONGEST_WAIT_S) for wait, later in pairwise(waits))


@given(st.integers(0, 10**9))
def test_a_wait_is_never_shorter_than_the_first_nor_longer_than_the_longest(waits: int) -> None:
    assert wait_s(waits, None, jitter=lowest) >= (1 - JITTER) * FIRST_WAIT_S
    assert wait_s(waits, None, jitter=highest) <= (1 + JITTER) * LONGEST_WAIT_S
    assert wait_s(waits, None) <= (1 + JITTER) * LONGEST_WAIT_S


@given(st.integers(0, 100))
def test_lanes_spread_around_the_wait(waits: int) -> None:
    base = wait_s(waits, None, jitter=middle)
    assert wait_s(waits, None, jitter=lowest) == pytest.approx(base * (1 - JITTER))
    assert wait_s(waits, None, jitter=highest) == pytest.approx(base * (1 + JITTER))


@given(st.integers(0, 100), st.floats(0, 3600))
def test_what_the_other_side_asked_for_is_a_floor_and_never_cut(
    waits: int, retry_after: float
) -> None:
    assert wait_s(waits, retry_after, jitter=lowest) == retry_after
    assert wait_s(waits, retry_after, jitter=highest) == pytest.approx(retry_after * (1 + JITTER))
    assert retry_after <= wait_s(waits, retry_after) <= retry_after * (1 + JITTER) + 1e-9


def test_a_retry_after_of_zero_is_obeyed() -> None:
    assert wait_s(9, 0.0) == 0.0


TEXTS = st.lists(st.text(max_size=200), max_size=5)


@given(TEXTS)
def test_a_turn_has_at_least_one_token_and_those_of_its_texts(texts: list[str]) -> None:
    turn = [Message(Role.USER, text) for text in texts]
    assert estimated_tokens(turn) == max(1, sum(map(tokens, texts)))


@given(TEXTS, st.text(max_size=50))
def test_saying_more_never_costs_less(texts: list[str], more: str) -> None:
    turn = [Message(Role.USER, text) for text in texts]
    assert estimated_tokens(turn) <= estimated_tokens([*turn, Message(Role.USER, more)])
