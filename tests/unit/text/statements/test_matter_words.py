"""Matters of texts by their words: finer than topics."""

from __future__ import annotations

import pytest

from pipeline.text.statements.topic_words import matters_of
from pipeline.text.terms import terms


@pytest.mark.parametrize(
    ("text", "matter"),
    [
        ("Maya handed in her notice", "manager"),
        ("Maya swapped her piano for a cello", "instrument"),
        ("Jonas hat den Kredit abbezahlt", "debt"),
        ("Jonas geht zum Volkshochschulkurs Englisch", "course"),
        ("Lucía ya no lleva aparatos", "teeth"),
        ("小雨戒酒了", "alcohol"),
    ],
)
def test_a_statement_has_the_matters_of_its_words(text: str, matter: str) -> None:
    assert matter in matters_of(terms(text))


@pytest.mark.parametrize("text", ["", "Maya is tall", "xyzzy"])
def test_unknown_words_have_no_matter(text: str) -> None:
    assert matters_of(terms(text)) == frozenset()
