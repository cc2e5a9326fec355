"""Suggestions: changes of memories that were not applied and wait for a person's decision."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID, uuid5


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
    event_id: UUID
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
