"""BM25 shares of texts whose terms are counted once."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from pipeline.text.word_scores import K1, B, WordIndex

WORDS = [f"w{number}" for number in range(30)]
CHANCE = random.Random(5)
TEXTS = [[CHANCE.choice(WORDS) for _ in range(length)] for length in (0, 1, 4, 9, 9, 30)]


def share(question: Sequence[str], text: Sequence[str], texts: Sequence[Sequence[str]]) -> float:
    """The formula, term by term."""
    mean = sum(map(len, texts)) / len(texts)
    score = full = 0.0
    for term in set(question):
        holding = sum(term in each for each in texts)
        if holding:
            weight = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            times = text.count(term)
            full += weight
            score += weight * times * (K1 + 1) / (times + K1 * (1 - B + B * len(text) / mean))
    return min(1.0, score / full) if full else 0.0


@pytest.mark.parametrize("words", [None, frozenset(WORDS)])
def test_shares_follow_the_formula_for_any_number_of_questions(
    words: frozenset[str] | None,
) -> None:
    index = WordIndex(TEXTS, words=words)
    for _ in range(20):
        question = CHANCE.sample([*WORDS, "unknown"], 5)
        assert index.shares(question) == pytest.approx([share(question, t, TEXTS) for t in TEXTS])


def test_a_question_without_a_known_term_has_no_shares() -> None:
    assert WordIndex(TEXTS).shares(["unknown"]) == [0.0] * len(TEXTS)
    assert WordIndex([]).shares(["unknown"]) == []


def test_rarity_is_counted_among_all_rows() -> None:
    texts = [["rare", "common"], ["common"]]
    few, many = (WordIndex(texts, rows=rows).shares(["rare", "common"])[1] for rows in (0, 1_000))
    assert few < many < 1
