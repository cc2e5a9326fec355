"""Vocabulary: which words of texts a word of a question may stand for, within bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.search.ranking import vocabulary
from pipeline.search.ranking.vocabulary import (
    MISTYPED,
    OTHER_FORM,
    Vocabulary,
    is_mistyped,
    may_be_mistyped,
    weight_of,
)
from pipeline.search.words.bm25 import HELD_IN


@pytest.mark.parametrize(
    ("term", "other", "weight"),
    [
        ("miet", "miet", 1.0),
        ("versicherung", "haftpflichtversicherung", HELD_IN),
        ("vegetariana", "vegetariano", OTHER_FORM),
        ("cocnert", "concert", MISTYPED),
        ("tea", "team", 0.0),
        ("bruno", "brunch", 0.0),
        ("2019", "2018", 0.0),
    ],
)
def test_forms_and_compounds_of_a_word_count_in_part(term: str, other: str, weight: float) -> None:
    assert Vocabulary([[other]]).matches(term).get(other, 0.0) == weight


WORD = st.text("abcde", min_size=1, max_size=12)


def compared_with_each(term: str, words: set[str]) -> dict[str, float]:
    weights = {
        other: weight for other in words if other != term and (weight := weight_of(term, other))
    }
    if term in words:
        weights[term] = 1.0
    if weights or not 5 <= len(term) <= 24:
        return weights
    return {
        other: MISTYPED
        for other in words
        if may_be_mistyped(term, other) and is_mistyped(term, other)
    }


@given(WORD, st.lists(st.lists(WORD, max_size=8), max_size=6))
def test_the_words_found_are_those_of_a_comparison_with_each(
    term: str, texts: list[list[str]]
) -> None:
    words = {word for text in texts for word in text}
    assert Vocabulary(texts).matches(term) == compared_with_each(term, words)


@given(WORD, st.lists(st.lists(WORD, max_size=8), min_size=1, max_size=6))
def test_the_share_of_a_text_is_its_best_weight(term: str, texts: list[list[str]]) -> None:
    words = Vocabulary(texts)
    weights = words.matches(term)
    best = [max((weights.get(word, 0.0) for word in text), default=0.0) for text in texts]
    assert Vocabulary(texts).shares(term).tolist() == best


def test_words_beyond_the_limits_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "MOST_ALIKE", 3)
    compounds = [f"{letter}{letter}garden" for letter in "abcdef"]
    assert set(Vocabulary([compounds]).matches("garden")) == set(compounds[:3])


def test_all_words_of_a_question_share_one_limit_of_comparisons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vocabulary, "MOST_MISTYPED_IN_ALL", 1)
    words = Vocabulary([["concert", "festival"]])
    assert words.matches("cocnert") == {"concert": MISTYPED}
    assert words.matches("fetsival") == {}
