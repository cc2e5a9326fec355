"""Candidates: the memories that are shown to the decision about a fact. Pure functions.

    score  =  cosine  +  BM25 share of the words  +  slot, or without slots the topic

`slot` is 1 for the same attribute of the same subject, and BESIDE for another attribute of that
subject with a common topic or word. If fact or memory has no slot, the share of the fact's topics
that the words of the memory have counts TOPIC at most. Meaning alone misses an update that names no
word of the memory, and most updates in languages that the embedder does not know; words alone miss
paraphrases.
Source: tests/eval/candidates.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from pipeline.text import terms
from pipeline.text.slots import SEPARATOR
from pipeline.text.topic_words import topics_of
from pipeline.text.topics import attributes_beside, topics
from pipeline.text.word_scores import prefixes, shares

# Share of the same slot that another attribute of the same topic has.
BESIDE = 0.9
# Score of a memory whose words have all topics of a fact, if one of them has no slot.
TOPIC = 0.4
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
    words = [memory.terms.split(" ") for memory in memories]
    texts = [prefixes(of_memory) for of_memory in words]
    known = [topics_of(of_memory) for of_memory in words]
    return [_ranked(fact, memories, texts, known, rows) for fact in facts]


def _ranked(
    fact: Compared,
    memories: Sequence[Comparable],
    texts: Sequence[Sequence[str]],
    topics_of_texts: Sequence[frozenset[str]],
    rows: int,
) -> list[UUID]:
    """The memories in the order of their scores for one fact."""
    question = terms.asked(fact.text)
    words = shares(prefixes(question), texts, rows=rows)
    nearness = _Nearness(fact.slot, topics_of(question))
    scores = {
        memory.id: fact.cosines.get(memory.id, 0.0) + share + nearness.of(memory.slot, of_text)
        for memory, share, of_text in zip(memories, words, topics_of_texts, strict=True)
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
    """Nearness of memories to the slot of one fact, or to its topics."""

    def __init__(self, slot: str | None, topics_of_fact: frozenset[str]) -> None:
        self._slot = slot
        self._topics = topics_of_fact
        self._known: dict[str, float] = {}

    def of(self, slot: str | None, topics_of_text: frozenset[str]) -> float:
        """The score of a memory with this slot and these topics."""
        if self._slot is None or slot is None:
            shared = len(self._topics & topics_of_text)
            return TOPIC * shared / len(self._topics) if shared else 0.0
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
