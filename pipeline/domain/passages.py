"""Passages: the search results, which are memories or turns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from pipeline.domain.messages import Role
from pipeline.domain.scope import Scope

# Ordinal in the key of a memory, which has no turn.
FACT = -1


class PassageKey(NamedTuple):
    """Key of a memory (its id), or of a turn (its event's id and its ordinal in the event).

    A tuple, because a search looks up hundreds of candidates a dozen times each: hashing a
    dataclass takes three times as long.
    """

    id: UUID
    ordinal: int = FACT

    @property
    def is_turn(self) -> bool:
        """True for the key of a turn."""
        return self.ordinal != FACT

    @property
    def public_id(self) -> UUID:
        """Id shown to clients. That of a turn is derived from its key, so it never changes."""
        return uuid5(self.id, f"turn:{self.ordinal}") if self.is_turn else self.id


@dataclass(frozen=True, slots=True)
class Turn:
    """A message as the caller sent it. `pending`: its event has not ended."""

    id: UUID
    scope: Scope
    role: Role
    speaker: str | None
    text: str
    metadata: dict[str, Any]
    event_id: UUID
    said_at: datetime
    created_at: datetime
    pending: bool
