"""Candidates: the memories that are shown to the decision about a fact. Pure functions.

    score  =  cosine  +  BM25 share of the words  +  slot, or without slots topic and matter

`slot` is 1 for the same attribute of the same subject, and BESIDE for another attribute of that
subject with a common topic or word. If fact or memory has no slot, the shares of the fact's topics
and finer matters that the words of the memory have count TOPIC and MATTER at most. Meaning alone
misses an update that names no word of the memory, and most updates in languages that the embedder
does not know; words alone miss paraphrases.
Source: tests/eval/candidates.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from pipeline.text import terms
from pipeline.text.statements.slots import SEPARATOR
from pipeline.text.statements.topic_words import matters_of, topics_of
from pipeline.text.statements.topics import attributes_beside, topics
from pipeline.text.word_scores import WordIndex, prefixes

# Share of the same slot that another attribute of the same topic has.
BESIDE = 0.9
# Scores of a memory whose words have all topics, and all matters, of a fact, if one has no slot.
TOPIC, MATTER = 0.2, 0.5
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


@dataclass(frozen=True, slots=True)
class About:
    """The topics and the matters that the words of a text are about."""

    topics: frozenset[str]
    matters: frozenset[str]

    @classmethod
    def of(cls, words: Sequence[str]) -> About:
        """Read them from the terms of a text."""
        return cls(topics_of(words), matters_of(words))


class Ranking:
    """Memories whose words are counted once, to order them for any number of facts.

    `rows`: number of memories in the scope, if these are only some of them. `words`: the first
    letters of the words of all facts; None for any.
    """

    def __init__(
        self,
        memories: Sequence[Comparable],
        *,
        rows: int = 0,
        words: Collection[str] | None = None,
    ) -> None:
        of_memories = [memory.terms.split(" ") for memory in memories]
        self._memories = memories
        self._index = WordIndex(list(map(prefixes, of_memories)), rows=rows, words=words)
        self._about = [About.of(of_memory) for of_memory in of_memories]

    def of(self, fact: Compared) -> list[UUID]:
        """The memories in the order of their scores for this fact, best first."""
        question = terms.query_terms(fact.text)
        words = self._index.shares(prefixes(question))
        of_fact = About.of(question)
        scores = {
            memory.id: fact.cosines.get(memory.id, 0.0)
            + share
            + _nearness(fact.slot, of_fact, memory.slot, about)
            for memory, share, about in zip(self._memories, words, self._about, strict=True)
        }
        return sorted(scores, key=scores.__getitem__, reverse=True)


def ranked(
    facts: Sequence[Compared], memories: Sequence[Comparable], *, rows: int = 0
) -> list[list[UUID]]:
    """The memories in the order of their scores for each fact; `rows` as for a Ranking."""
    words = {word for fact in facts for word in prefixes(terms.query_terms(fact.text))}
    ranking = Ranking(memories, rows=rows, words=words)
    return [ranking.of(fact) for fact in facts]


def chosen(rankings: Sequence[Sequence[UUID]], *, limit: int) -> list[UUID]:
    """The best candidates of all facts, taken in turns: `limit` for one fact, more for several."""
    most = max(min(len(rankings), BATCH_SHARE) * limit, LEAST_OF_A_FACT * len(rankings))
    picked: dict[UUID, None] = {}
    for place in range(limit):
        for ranking in rankings:
            if place < len(ranking) and len(picked) < most:
                picked[ranking[place]] = None
    return list(picked)


def _nearness(slot: str | None, fact: About, other_slot: str | None, memory: About) -> float:
    """The score of a memory by the slots, or without slots by what the words are about."""
    if slot and other_slot:
        return nearness(slot, other_slot)
    topic = _share(fact.topics, memory.topics)
    return TOPIC * topic + MATTER * _share(fact.matters, memory.matters)


def _share(wanted: frozenset[str], given: frozenset[str]) -> float:
    """Share of the wanted names that are given; 0 if none is wanted."""
    return len(wanted & given) / len(wanted) if wanted else 0.0


@lru_cache(maxsize=4096)  # memories of a scope share their slots
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
