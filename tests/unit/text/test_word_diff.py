"""The difference of two texts is readable, and contains both of them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.word_diff import LONGEST, MOST_IN_RESPONSE, DiffBudget, word_diff

LONG = "a " * LONGEST
WORDS = st.lists(st.sampled_from(["Maya", "lives", "in", "Porto", "東京", "に", "."])).map(" ".join)


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("Maya lives in Porto.", "Maya lives in Lisbon.", "Maya lives in [-Porto-]{+Lisbon+}."),
        ("Tea", "Tea", "Tea"),
        ("", "Tea", "{+Tea+}"),
        ("Tea", "", "[-Tea-]"),
        ("住在東京", "住在大阪", "住在[-東京-]{+大阪+}"),
        ("a " * LONGEST, "b", f"[-{'a ' * LONGEST}-]{{+b+}}"),
        (f"{LONG}red {LONG}", f"{LONG}blue {LONG}", f"{LONG}[-red-]{{+blue+}} {LONG}"),
        (f"red {LONG}tea", f"blue {LONG}milk", f"[-red {LONG}tea-]{{+blue {LONG}milk+}}"),
    ],
)
def test_a_difference_marks_words(old: str, new: str, shown: str) -> None:
    assert word_diff(old, new) == shown


@given(WORDS, WORDS)
def test_both_texts_can_be_read_from_the_difference(old: str, new: str) -> None:
    shown = word_diff(old, new) or ""
    removed, added = r"\[-(.*?)-\]", r"\{\+(.*?)\+\}"
    assert re.sub(added, r"\1", re.sub(removed, "", shown)) == new
    assert re.sub(removed, r"\1", re.sub(added, "", shown)) == old


REPEATS = [(".", ".,"), ("一", "一二"), (".,;", ".;"), ("a ", "a b ")]


@pytest.mark.parametrize(("unit", "other"), REPEATS)
def test_repeated_tokens_take_a_bounded_number_of_comparisons(unit: str, other: str) -> None:
    budget = DiffBudget()
    assert word_diff((unit * 1_000)[:1_000], (other * 1_000)[:1_000], budget)
    assert MOST_IN_RESPONSE - budget.left < 25_000


def test_a_response_without_comparisons_left_has_no_further_difference() -> None:
    assert word_diff("Maya lives in Porto.", "Maya lives in Lisbon.", DiffBudget(0)) is None
