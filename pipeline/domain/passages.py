"""Passages: what search returns, memories and turns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from pipeline.domain.messages import Role
from pipeline.domain.scope import Scope

# The ordinal of what is no turn.
FACT = -1


class PassageKey(NamedTuple):
    """A memory by its id, or a turn by its event and its ordinal in it.

    A tuple: each of hundreds of candidates is looked up a dozen times by it, which takes a
    dataclass three times as long.
    """

    id: UUID
    ordinal: int = FACT

    @property
    def is_turn(self) -> bool:
        return self.ordinal != FACT

    @property
    def public_id(self) -> UUID:
        """What clients see: a turn's id is derived, and the same for ever."""
        return uuid5(self.id, f"turn:{self.ordinal}") if self.is_turn else self.id


@dataclass(frozen=True, slots=True)
class Turn:
    """A message as it was said. `pending`: its event has not ended."""

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
