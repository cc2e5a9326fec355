"""Suggestions: changes of memories that were not applied and wait for a person's decision."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID, uuid5

from pipeline.domain.consolidation import conservation
from pipeline.domain.consolidation.decided import DecidedChange, merge, retire
from pipeline.domain.memories import Memory
from pipeline.text.statements.values import stated


class SuggestionKind(StrEnum):
    """Change that is suggested. COMBINE: several memories into one. RESOLVE: a contradiction."""

    UPDATE = "UPDATE"
    DELETE = "DELETE"
    COMBINE = "COMBINE"
    RESOLVE = "RESOLVE"


class SuggestionState(StrEnum):
    """State of a suggestion. INVALID: a memory that it names has changed since."""

    OPEN = "OPEN"
    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"
    DISMISSED = "DISMISSED"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change that a model decided on and that was withheld.

    `targets`: id and version of each memory that it would change. `proposed_text`: the text after
    an UPDATE.
    """

    lane_id: UUID
    kind: SuggestionKind
    event_id: UUID | None
    fact_text: str
    targets: tuple[tuple[UUID, int], ...]
    proposed_text: str | None
    reason: str

    @property
    def content_hash(self) -> bytes:
        """Hash of the change, without its event: equal if the same change is suggested again."""
        parts = (self.kind, self.fact_text, self.proposed_text or "", *map(str, self.targets))
        return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).digest()

    @property
    def id(self) -> UUID:
        """Id derived from lane and content: the same change has one suggestion, open or decided."""
        return uuid5(self.lane_id, f"suggestion:{self.content_hash.hex()}")


@dataclass(frozen=True, slots=True)
class ShownChange:
    """One memory's change, as a person sees it before the decision.

    `after`: its text after the change; None if it is retired. `merged_into`: the memory that has
    its content then. `lost`: names, numbers and dates that no memory of the suggestion has then.
    """

    memory_id: UUID
    before: str | None
    after: str | None
    merged_into: UUID | None
    lost: tuple[str, ...]


def shown_changes(
    kind: SuggestionKind, targets: Sequence[tuple[UUID, str | None]], text: str | None
) -> list[ShownChange]:
    """The changes that a suggestion would make to its targets, given as ids with their texts."""
    if kind is SuggestionKind.DELETE or text is None:
        return [ShownChange(key, before, None, None, _values(before)) for key, before in targets]
    [(anchor, first), *others] = targets
    changed = ShownChange(anchor, first, text, None, _lost(first, text))
    merged = (ShownChange(key, before, None, anchor, _lost(before, text)) for key, before in others)
    return [changed, *merged]


def _values(text: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value.text for value in stated(text or "").values))


def _lost(before: str | None, after: str) -> tuple[str, ...]:
    return conservation.lost(before or "", after, "")


def accepted_changes(
    kind: SuggestionKind, targets: Sequence[Memory], text: str | None, reason: str
) -> list[DecidedChange]:
    """The changes of an accepted suggestion. `text`: None for a DELETE.

    `targets`: its memories, the one that stays first; after an UPDATE that an add withheld, also
    the memory that was added in its place.
    """
    if text is None:
        return retire(targets, reason)
    if kind is SuggestionKind.RESOLVE and targets[0].text == text:
        return retire(targets[1:], reason, into=targets[0].id)
    return merge(targets, text, reason, stay_true=kind is SuggestionKind.COMBINE)
