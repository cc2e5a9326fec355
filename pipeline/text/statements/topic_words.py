"""Topics and matters of a text by its words, in English, German, Spanish and Chinese.

    "was promoted to head of sales"    work     position, manager
    "kauft eine Eigentumswohnung"      home     dwelling
    "换了一台新手机"                     device   telephone

A statement of a change often shares no word with the memory that it changes, but nearly always its
topic. Matters are finer than topics. The words are in words/topics.txt and words/matters.txt. A
German compound has the topic of its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pipeline.text.terms import terms
from pipeline.text.word_lists import groups_in

# Fewest letters of a word that is looked up at the end of a compound, and of its first part.
MIN_END, MIN_START = 4, 3


class WordTable:
    """Groups of words, looked up by term. A compound has the groups of its longest known end."""

    def __init__(self, file: str) -> None:
        """`file`: its name in words/."""
        groups: dict[str, set[str]] = {}
        for group, words in groups_in(file).items():
            for term in terms(words):
                groups.setdefault(term, set()).add(group)
        self._groups = {term: frozenset(names) for term, names in groups.items()}
        self._groups_of_term = lru_cache(maxsize=20_000)(self._look_up)

    def groups_of(self, words: Sequence[str]) -> frozenset[str]:
        """The groups of a text by its terms."""
        return frozenset().union(*map(self._groups_of_term, words))

    def _look_up(self, term: str) -> frozenset[str]:
        ends = (term[at:] for at in range(MIN_START, len(term) - MIN_END + 1))
        known = (self._groups[end] for end in (term, *ends) if end in self._groups)
        return next(known, frozenset())


_TOPICS, _MATTERS = WordTable("topics.txt"), WordTable("matters.txt")


def topics_of(words: Sequence[str]) -> frozenset[str]:
    """The topics of a text by its terms."""
    return _TOPICS.groups_of(words)


def matters_of(words: Sequence[str]) -> frozenset[str]:
    """The matters of a text by its terms."""
    return _MATTERS.groups_of(words)
