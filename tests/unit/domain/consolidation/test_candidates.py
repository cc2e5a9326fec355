"""Candidates: the order of the memories that are shown to the decision about a fact."""

from __future__ import annotations

from uuid import UUID

from pipeline.domain.consolidation.candidates import Comparable, Compared, ranked
from pipeline.text.terms import terms

TEXTS = (
    "Maya has a tortoise",
    "Maya collects stamps",
    "Maya reports to the manager of the sales team",
    "Maya sings in a choir",
)


def memories(slots: tuple[str | None, ...] = (None,) * 4) -> list[Comparable]:
    rows = zip(TEXTS, slots, strict=True)
    return [Comparable(UUID(int=i), " ".join(terms(t)), slot) for i, (t, slot) in enumerate(rows)]


def test_a_memory_of_the_same_topic_comes_first_without_slots() -> None:
    fact = Compared("She resigned from her job", None, {})
    [ranking] = ranked([fact], memories())
    assert ranking[0] == UUID(int=2)


def test_the_matter_tells_memories_of_one_topic_apart() -> None:
    texts = ("Maya's colleague is Tom", "Maya has an office", "Maya reports to Ann", "Maya's shift")
    rows = [Comparable(UUID(int=i), " ".join(terms(t)), None) for i, t in enumerate(texts)]
    [ranking] = ranked([Compared("She handed in her notice", None, {})], rows)
    assert ranking[0] == UUID(int=2)


def test_between_slots_the_words_have_no_topic() -> None:
    slots = ("maya · pets", "maya · stamps", "maya · manager", "maya · choir")
    fact = Compared("She resigned from her job", "maya · choir", {})
    [ranking] = ranked([fact], memories(slots))
    assert ranking[0] == UUID(int=3)
