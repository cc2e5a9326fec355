"""Curation: proposals of a model about stored memories, and the checks before one is suggested.

    DELETE    junk: a memory without names, numbers, dates or an attribute, of kind `other`
    COMBINE   2 to 5 repeats of one statement; the oldest memory stays, with a text that has all of
              their values and none of its own
    UPDATE    an older and a newer statement about one matter; the text keeps all of the newer one,
              and all of the older one, too, unless both are about one single-valued attribute
    RESOLVE   an open conflict: the text is one of its statements, or has no values of its own

A proposal that fails a check is dropped. One that passes changes nothing: a person decides on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from uuid import UUID, uuid5

from pipeline.domain.consolidation import conservation
from pipeline.domain.facts import FactKind
from pipeline.domain.memories import Memory
from pipeline.domain.suggestions import SuggestionKind
from pipeline.text.edit_distance import one_letter_apart
from pipeline.text.equality import same_text
from pipeline.text.statements import polarity, slots
from pipeline.text.statements.values import stated

MOST_COMBINED = 5
# Maximum share of a scope's memories that one run proposes to delete, and the least maximum.
DELETE_SHARE, LEAST_DELETES = 0.1, 3


@dataclass(frozen=True, slots=True)
class CuratedMemory:
    """A memory as the model sees it."""

    text: str
    said_at: datetime
    speaker: str | None = None
    slot: str | None = None
    cardinality: slots.Cardinality | None = None


@dataclass(frozen=True, slots=True)
class CurationRequest:
    """Memories to look through.

    `groups`: positions of memories that may belong together. `conflicts`: positions of those that
    contradict each other.
    """

    memories: Sequence[CuratedMemory]
    groups: Sequence[Sequence[int]]
    conflicts: Sequence[Sequence[int]] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that a model proposes. `targets`: positions of memories in the request."""

    kind: SuggestionKind
    targets: tuple[int, ...]
    text: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class CuratedSuggestion:
    """A proposal that passed the checks. `targets`: the memory that stays first."""

    kind: SuggestionKind
    targets: tuple[Memory, ...]
    text: str | None
    reason: str

    @property
    def content_hash(self) -> bytes:
        """Hash of kind and memories with their texts, so a decision on them is remembered.

        The proposed text is left out: a model words it differently each time.
        """
        parts = sorted(f"{memory.id}:{same_text(memory.text)}" for memory in self.targets)
        digest = hashlib.blake2b("\0".join((self.kind, *parts)).encode(), digest_size=16)
        return digest.digest()

    @property
    def id(self) -> UUID:
        """Id derived from scope and content."""
        lane_id = self.targets[0].lane_id
        return uuid5(lane_id, f"curated:{self.content_hash.hex()}")


def reviewed(
    kind: SuggestionKind, memories: Sequence[Memory], text: str | None, reason: str
) -> CuratedSuggestion | None:
    """The proposal as a suggestion, or None if it fails a check."""
    ordered = sorted(memories, key=lambda m: (m.created_at or m.said_at, m.id))
    if not _fits(kind, ordered, text):
        return None
    if kind is SuggestionKind.RESOLVE:  # the statement that holds stays
        ordered.sort(key=lambda memory: memory.text != text)
    stored = None if kind is SuggestionKind.DELETE else text
    return CuratedSuggestion(kind, tuple(ordered), stored, reason)


def _fits(kind: SuggestionKind, memories: Sequence[Memory], text: str | None) -> bool:
    match kind:
        case SuggestionKind.DELETE:
            return len(memories) == 1 and _is_plain(memories[0])
        case SuggestionKind.COMBINE if text:
            return 2 <= len(memories) <= MOST_COMBINED and _combines(memories, text)
        case SuggestionKind.UPDATE if text:
            return len(memories) == 2 and _updates(memories, text)
        case SuggestionKind.RESOLVE if text:
            return len(memories) > 1 and _resolves(memories, text)
        case _:
            return False


def _is_plain(memory: Memory) -> bool:
    """Tell if a memory has no names, numbers or dates, no attribute and no special kind."""
    plain = memory.slot is None and memory.kind is FactKind.OTHER
    return plain and not stated(memory.text).values


def _combines(memories: Sequence[Memory], text: str) -> bool:
    """Tell if the text has all of the memories, which state the same."""
    same = not any(states_another(a, b) for a, b in combinations(memories, 2))
    complete = all(
        not conservation.lost(memory.text, text, "")
        and conservation.share_of_words(memory.text, text) >= conservation.KEPT_WORDS
        and polarity.takes_back(memory.text) == polarity.takes_back(text)
        for memory in memories
    )
    return same and complete and _invents_nothing(memories, text)


def _updates(memories: Sequence[Memory], text: str) -> bool:
    """Tell if the text puts the newer statement in the place of the older one."""
    older, newer = sorted(memories, key=lambda memory: memory.said_at)
    speakers = {memory.speaker for memory in memories if memory.speaker}
    if older.said_at == newer.said_at or len(speakers) > 1:
        return False
    known = newer.cardinality or older.cardinality
    change = conservation.Replacement(
        old=older.text,
        new=text,
        fact=newer.text,
        old_slot=older.slot,
        fact_slot=newer.slot,
        cardinality=known,
    )
    same_slot = older.slot == newer.slot and slots.single_valued(older.slot, known)
    tells_both = not conservation.lost(older.text, text, "")
    return (
        (same_slot or tells_both)
        and not _subjects_differ(older, newer)
        and conservation.objection(change) is None
        and not conservation.lost(newer.text, text, "")
        and _invents_nothing(memories, text)
    )


def _resolves(memories: Sequence[Memory], text: str) -> bool:
    """Tell if the memories are of one open conflict, and the text is made of their values."""
    conflicts = {memory.conflict_id for memory in memories}
    return len(conflicts) == 1 and None not in conflicts and _invents_nothing(memories, text)


def _invents_nothing(memories: Sequence[Memory], text: str) -> bool:
    """Tell if each name, number and date of the text is in one of the memories."""
    known = [stated(memory.text) for memory in memories]
    return all(any(k.keeps(value) for k in known) for value in stated(text).values)


def states_another(first: Memory, other: Memory) -> bool:
    """Tell if two memories are two statements: other subject, attribute, value or polarity."""
    if polarity.takes_back(first.text) != polarity.takes_back(other.text):
        return True
    slots_differ = bool(first.slot and other.slot and first.slot != other.slot)
    values_differ = any(_replaced(first.text, other.text))
    return slots_differ or values_differ or _subjects_differ(first, other)


def _replaced(first: str, other: str) -> Iterator[bool]:
    """True for each value of `first` in whose place `other` has another one of its class."""
    before, after = stated(first), stated(other)
    for value in before.values:
        if not after.keeps(value):
            yield any(v.kind is value.kind and not before.keeps(v) for v in after.values)


def _subjects_differ(first: Memory, other: Memory) -> bool:
    leading = [v for v in stated(first.text).values if v.leads]
    others = [v for v in stated(other.text).values if v.leads]
    if not leading or not others:
        return False
    return not (
        stated(other.text).keeps(leading[0]) or stated(first.text).keeps(others[0])
    ) or one_letter_apart(leading[0].key, others[0].key)
