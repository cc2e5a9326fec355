"""The stored memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from pipeline.domain.messages import Role
from pipeline.domain.scope import Scope


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as stored. `version` counts its states from 1; `state` is ACTIVE or RETIRED."""

    id: UUID
    lane_id: UUID
    scope: Scope
    text: str
    metadata: dict[str, Any]
    attributed_to: Role
    state: str
    immutable: bool
    expiration_date: date | None
    version: int
    event_id: UUID | None
    message_ordinal: int | None
    valid_from: datetime
    created_at: datetime | None = None
    updated_at: datetime | None = None
    categories: tuple[str, ...] = ()

    @property
    def said_at(self) -> datetime:
        """Time of the statement, under the name that a turn uses for it."""
        return self.valid_from
