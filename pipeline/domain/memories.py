"""The stored memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from pipeline.domain.facts import Fact, FactKind, MemoryType
from pipeline.domain.messages import Role
from pipeline.domain.scope import Scope
from pipeline.text.statements.slots import Cardinality
from pipeline.text.times.past import current_slot

# Values of a fact that its memory keeps, besides text, source, times and categories.
STRUCTURE = ("kind", "memory_type", "subject", "attribute", "cardinality", "speaker", "confidence")

# Those of them that say what it is about.
SLOT = ("subject", "attribute", "cardinality")


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as stored. `version` counts its states from 1; `state` is ACTIVE or RETIRED.

    `said_at`: time of the statement. `valid_from`: time in the world since when it holds, or when
    it happens; equal to `said_at` if the statement names no time. `superseded_by`: the memory that
    replaced this one. `appended`: added without a comparison, with a slot of one value at a time.
    No model changes a memory that is `pinned`, or whose text a person has edited, at `edited_at`.
    `conflict_id`: an open conflict that it is part of. `suggestion_id`: an open suggestion that
    would change it, or that was withheld from the fact it states. `cardinality`: that of its fact.
    """

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
    said_at: datetime
    valid_from: datetime
    created_at: datetime | None = None
    updated_at: datetime | None = None
    categories: tuple[str, ...] = ()
    kind: FactKind = FactKind.OTHER
    memory_type: MemoryType = MemoryType.SEMANTIC
    subject: str | None = None
    attribute: str | None = None
    cardinality: Cardinality | None = None
    speaker: str | None = None
    confidence: float | None = None
    superseded_by: UUID | None = None
    appended: bool = False
    conflict_id: UUID | None = None
    suggestion_id: UUID | None = None
    pinned: bool = False
    edited_at: datetime | None = None

    @property
    def protection(self) -> str | None:
        """The reason why no model may change it, or None."""
        if self.pinned:
            return "It is pinned."
        return "A person has edited this memory." if self.edited_at else None

    @property
    def slot(self) -> str | None:
        """Key of the subject's attribute, such as `maya · residence`, if both are known.

        None for a statement of the past: it is no value of the attribute that holds now.
        """
        return current_slot(self.subject, self.attribute, self.text)


def structure(of: Fact | Memory) -> dict[str, Any]:
    """The values named by STRUCTURE."""
    return {name: getattr(of, name) for name in STRUCTURE}


def structure_from(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """The values named by STRUCTURE, read from JSON; those that are missing are unknown."""
    values = values or {}
    return {
        **{name: values.get(name) for name in STRUCTURE},
        "kind": FactKind(values.get("kind") or FactKind.OTHER),
        "memory_type": MemoryType(values.get("memory_type") or MemoryType.SEMANTIC),
        "cardinality": Cardinality(values["cardinality"]) if values.get("cardinality") else None,
    }
