"""Candidates: the memories that are shown to the decision about a fact. Pure functions.

    score  =  cosine  +  BM25 share of the words  +  slot

`slot` is 1 for the same attribute of the same subject, and BESIDE for another attribute of that
subject with a common topic or word. Meaning alone misses an update that names no word of the
memory, and most updates in languages that the embedder does not know; words alone miss paraphrases.
Source: tests/eval/candidates.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from pipeline.text import terms
from pipeline.text.slots import SEPARATOR
from pipeline.text.topics import attributes_beside, topics
from pipeline.text.word_scores import prefixes, shares

# Share of the same slot that another attribute of the same topic has.
BESIDE = 0.9
# A batch of several facts shows this many times the candidates of one fact, and at least as many
# of each fact as the second number.
BATCH_SHARE, LEAST_OF_A_FACT = 2, 3


@dataclass(frozen=True, slots=True)
class Comparable:
    """A memory to compare facts with. `terms`: those of its text, joined by spaces."""

    id: UUID
    terms: str
    slot: str | None


@dataclass(frozen=True, slots=True)
class Compared:
    """A fact to find candidates for: its text, its slot, and its cosine with each memory."""

    text: str
    slot: str | None
    cosines: Mapping[UUID, float]


def ranked(
    facts: Sequence[Compared], memories: Sequence[Comparable], *, rows: int = 0
) -> list[list[UUID]]:
    """The memories in the order of their scores, best first, for each fact.

    `rows`: number of memories in the scope, if these are only some of them.
    """
    texts = [prefixes(memory.terms.split(" ")) for memory in memories]
    return [_ranked(fact, memories, texts, rows) for fact in facts]


def _ranked(
    fact: Compared, memories: Sequence[Comparable], texts: Sequence[Sequence[str]], rows: int
) -> list[UUID]:
    words = shares(prefixes(terms.asked(fact.text)), texts, rows=rows)
    nearness = _Nearness(fact.slot)
    scores = {
        memory.id: fact.cosines.get(memory.id, 0.0) + share + nearness.of(memory.slot)
        for memory, share in zip(memories, words, strict=True)
    }
    return sorted(scores, key=scores.__getitem__, reverse=True)


def chosen(rankings: Sequence[Sequence[UUID]], *, limit: int) -> list[UUID]:
    """The best candidates of all facts, taken in turns: `limit` for one fact, more for several."""
    most = max(min(len(rankings), BATCH_SHARE) * limit, LEAST_OF_A_FACT * len(rankings))
    picked: dict[UUID, None] = {}
    for place in range(limit):
        for ranking in rankings:
            if place < len(ranking) and len(picked) < most:
                picked[ranking[place]] = None
    return list(picked)


class _Nearness:
    """Nearness of slots to the slot of one fact, computed once for each slot."""

    def __init__(self, slot: str | None) -> None:
        self._slot = slot
        self._known: dict[str, float] = {}

    def of(self, slot: str | None) -> float:
        if self._slot is None or slot is None:
            return 0.0
        if slot not in self._known:
            self._known[slot] = nearness(self._slot, slot)
        return self._known[slot]


def nearness(first: str, other: str) -> float:
    """1 for the same slot, BESIDE for the same subject and topic or word, else 0."""
    if first == other:
        return 1.0
    subject, _, attribute = first.partition(SEPARATOR)
    other_subject, _, other_attribute = other.partition(SEPARATOR)
    if subject != other_subject:
        return 0.0
    common_word = set(attribute.split("_")) & set(other_attribute.split("_"))
    return BESIDE if common_word or topics(attribute) & topics(other_attribute) else 0.0


def slots_beside(slot: str | None) -> list[str]:
    """The slot, and those of the same subject whose attributes are known to share a topic."""
    if slot is None:
        return []
    subject, _, attribute = slot.partition(SEPARATOR)
    return [slot, *(f"{subject}{SEPARATOR}{name}" for name in attributes_beside(attribute))]
