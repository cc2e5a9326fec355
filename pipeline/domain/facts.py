"""Facts, their neighbours among the memories, and the decision about each fact."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from pipeline.domain.messages import Role, Source
from pipeline.text.statements import slots
from pipeline.text.statements.slots import Cardinality
from pipeline.text.times.past import current_slot


class Outcome(StrEnum):
    """Effect of one fact on the memories, in the terms of the Mem0 clients."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NOOP = "NOOP"


class FactKind(StrEnum):
    """Kind of a fact: the sort of thing it states."""

    PREFERENCE = "preference"
    PERSONAL_DETAIL = "personal_detail"
    PLAN = "plan"
    ACTIVITY = "activity"
    HEALTH = "health"
    WORK = "work"
    RELATIONSHIP = "relationship"
    OPINION = "opinion"
    ASSISTANT_COMMITMENT = "assistant_commitment"
    OTHER = "other"


class MemoryType(StrEnum):
    """Type of a memory: something that holds, something that happened, or how a task was done."""

    SEMANTIC = "semantic"
    EPISODIC = "episodic"
    PROCEDURAL = "procedural"


def memory_type(kind: FactKind, valid_from: datetime | None) -> MemoryType:
    """EPISODIC for an activity at a known time, else SEMANTIC."""
    happened = kind is FactKind.ACTIVITY and valid_from is not None
    return MemoryType.EPISODIC if happened else MemoryType.SEMANTIC


@dataclass(frozen=True, slots=True)
class Fact:
    """A self-contained statement in the third person, with absolute dates.

    `categories` are names from the list given to the model. `speaker`: name of the participant who
    states it. `subject` and `attribute`: what it is about, such as "Maya" and "residence".
    `valid_from`: time in the world since when it holds, or when it happens; None: the time of the
    statement. `confidence`: the model's, from 0 to 1. `said_at`: time of the statement, set where
    facts are compared with memories. `cardinality`: what is known about the attribute beside the
    table of `pipeline.text.statements.slots`. Attributes without a value are unknown.
    """

    text: str
    source: Source
    attributed_to: Role = Role.USER
    categories: tuple[str, ...] = ()
    speaker: str | None = None
    kind: FactKind = FactKind.OTHER
    memory_type: MemoryType = MemoryType.SEMANTIC
    subject: str | None = None
    attribute: str | None = None
    valid_from: datetime | None = None
    confidence: float | None = None
    said_at: datetime | None = None
    cardinality: Cardinality | None = None

    @property
    def single_valued(self) -> bool:
        """True if the attribute has one value at a time."""
        return slots.single_valued(self.slot, self.cardinality)

    @property
    def slot(self) -> str | None:
        """Key of the subject's attribute, such as `maya · residence`, if both are known.

        None for a statement of the past: it is no value of the attribute that holds now.
        """
        return current_slot(self.subject, self.attribute, self.text)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored memory, shown to the model together with the new facts.

    `similarity` is the cosine (-1 to 1) to the nearest new fact; 1.0 for an equal text.
    `said_at`: time of the statement; None in outputs of earlier releases. `slot`: key of what it is
    about, if known.
    """

    memory_id: UUID
    text: str
    similarity: float
    said_at: datetime | None = None
    slot: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about one fact. A fact may have several, each with another target.

    `fact` is its 0-based position; `memory_id` the target of UPDATE, DELETE and NOOP;
    `text` the memory's text after ADD or UPDATE; `reason` one sentence for the receipt.
    """

    fact: int
    outcome: Outcome
    reason: str
    text: str | None = None
    memory_id: UUID | None = None
