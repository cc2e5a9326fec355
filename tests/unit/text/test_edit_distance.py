"""Edit distance: one error for each letter missing, added, wrong or swapped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.edit_distance import distance

WORDS = st.text("abc", max_size=6)


@pytest.mark.parametrize(
    ("word", "other", "errors"),
    [("redis", "redis", 0), ("reids", "redis", 1), ("rdis", "redis", 1), ("house", "horse", 1)],
)
def test_each_error_counts_once(word: str, other: str, errors: int) -> None:
    assert distance(word, other) == errors


def test_a_wrong_letter_is_two_errors_if_only_swaps_are_one() -> None:
    assert distance("house", "horse", swaps_only=True) == 2
    assert distance("huose", "house", swaps_only=True) == 1


@given(WORDS, WORDS)
def test_the_distance_is_symmetric_and_bounded(word: str, other: str) -> None:
    assert distance(word, other) == distance(other, word) <= max(len(word), len(other))
    assert (distance(word, other) == 0) == (word == other)
