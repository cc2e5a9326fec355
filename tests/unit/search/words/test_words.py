"""Lookups of a large scope: bounded reads, rarest terms first."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from pipeline.search.words.bm25 import HELD_BY, HELD_IN
from pipeline.search.words.large_scopes import MOST_LOOKUPS, MOST_READ, Form, WordStatistics


def statistics(texts: int = 20_000, **holding: float) -> WordStatistics:
    return WordStatistics(texts, 10.0, holding, counted=min(texts, 20_000))


def test_rare_terms_are_looked_up_alone() -> None:
    chosen = statistics(quastenflosser=3, lisbon=40).lookups(["lisbon", "quastenflosser"])
    assert [lookup.terms for lookup in chosen.lookups] == [("quastenflosser",), ("lisbon",)]
    assert not chosen.cut


def test_frequent_terms_are_looked_up_together() -> None:
    chosen = statistics(garden=2_500, bakery=2_500).lookups(["garden", "bakery"])
    assert [lookup.terms for lookup in chosen.lookups] == [("bakery", "garden")]
    assert chosen.cut


def test_terms_that_all_texts_have_are_read_up_to_the_bound() -> None:
    chosen = statistics(user=20_000, like=20_000).lookups(["user", "like"])
    assert [(lookup.terms, lookup.most) for lookup in chosen.lookups] == [
        (("like", "user"), MOST_READ)
    ]
    assert chosen.cut


def test_terms_that_very_many_texts_have_are_not_looked_up() -> None:
    """The index would return an entry for each of them."""
    chosen = statistics(texts=100_000, user=90_000, like=95_000, jazz=40).lookups(
        ["user", "like", "jazz"]
    )
    assert [lookup.terms for lookup in chosen.lookups] == [("jazz",)]
    assert chosen.cut


def test_a_term_that_the_statistics_do_not_know_is_looked_up_and_counted() -> None:
    chosen = statistics(user=20_000).lookups(["fresh"])
    assert [lookup.terms for lookup in chosen.lookups] == [("fresh",)]
    assert chosen.holding == [None]


def test_compounds_and_their_parts_count_in_part() -> None:
    scope = statistics(haftpflichtversicherung=4, hund=9, versicherung=2)
    forms = scope.lookups(["versicherung", "hundeschul"]).forms
    assert Form("haftpflichtversicherung", 0, HELD_IN) in forms
    assert Form("hund", 1, HELD_BY) in forms


NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=12)


@given(
    st.dictionaries(NAMES, st.floats(1, 1_000_000), max_size=60),
    st.lists(NAMES, max_size=64, unique=True),
    st.integers(2_001, 1_000_000),
)
def test_lookups_are_bounded(holding: dict[str, float], query: list[str], texts: int) -> None:
    counts = {term: min(count, texts) for term, count in holding.items()}
    chosen = WordStatistics(texts, 10.0, counts, counted=min(texts, 20_000)).lookups(query)
    assert sum(lookup.most for lookup in chosen.lookups) <= MOST_READ
    assert len(chosen.lookups) <= MOST_LOOKUPS + 15
    alone = {lookup.terms[0] for lookup in chosen.lookups if len(lookup.terms) == 1}
    assert chosen.cut or alone.issuperset(query)
