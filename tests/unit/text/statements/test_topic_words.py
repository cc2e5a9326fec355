"""Topics of texts by their words."""

from __future__ import annotations

import pytest

from pipeline.text.statements.topic_words import topics_of
from pipeline.text.terms import terms


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("Maya handed in her notice", "work"),
        ("Maya was promoted", "work"),
        ("Jonas hat eine Eigentumswohnung gekauft", "home"),
        ("Lucía se ha mudado", "home"),
        ("小雨换了一台新手机", "device"),
        ("小雨不再喝咖啡", "food"),
    ],
)
def test_a_statement_has_the_topics_of_its_words(text: str, topic: str) -> None:
    assert topic in topics_of(terms(text))


@pytest.mark.parametrize("text", ["", "Maya is tall", "xyzzy"])
def test_unknown_words_have_no_topic(text: str) -> None:
    assert topics_of(terms(text)) == frozenset()
