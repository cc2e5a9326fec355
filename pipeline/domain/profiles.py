"""Profiles of users: settings of a project, and fields with the memories behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pipeline.domain.events import Status

# Maximum number of users of one sample, and its default.
MOST_SAMPLED, SAMPLED = 10, 3


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """Settings of a project's profiles. `schema`: the JSON schema as the caller wrote it."""

    enabled: bool = False
    schema: Mapping[str, Any] | None = None
    custom_instructions: str | None = None

    @property
    def ready(self) -> bool:
        """True if profiles are generated: enabled, with a schema."""
        return self.enabled and self.schema is not None


@dataclass(frozen=True, slots=True)
class ProfileField:
    """The value of one property of a profile, and the memories that state it."""

    name: str
    value: Any
    memory_ids: Sequence[UUID]
    stored_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """A user's profile, and the state of its newest generation.

    `stale`: memories changed after the generation read them. `status`: that of the newest event;
    None before the first.
    """

    fields: Sequence[ProfileField] = ()
    generations: int = 0
    updated_at: datetime | None = None
    stale: bool = False
    due: bool = False
    event_id: UUID | None = None
    status: Status | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class GenerationJob:
    """Generations that one request has started. `users`: None for those erased since then."""

    id: UUID
    operation: str
    event_ids: Sequence[UUID]
    users: Sequence[str | None]
    statuses: Sequence[Status]
