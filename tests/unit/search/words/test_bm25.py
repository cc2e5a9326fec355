"""Parameters of BM25: which words of a query are searched inside others."""

from __future__ import annotations

from pipeline.search.words.bm25 import MOST_COMPOUND, asking


def test_all_words_of_a_short_query_are_searched_inside_compounds() -> None:
    values = asking(["versicherung", "maya"], limit=10)
    assert values["inside"] == ["%versicher%", "%maya%"]
    assert values["compounds"] == "versicherung"


def test_only_the_longest_words_of_a_long_query_are_searched_inside_compounds() -> None:
    words = [f"wort{letter * (5 + number)}" for number, letter in enumerate("abcdefghijklmnopqrst")]
    values = asking(words, limit=10)
    assert values["terms"] == words
    assert [pattern is not None for pattern in values["inside"]] == [False] * 12 + [True] * 8
    assert len(values["compounds"].split()) == MOST_COMPOUND
