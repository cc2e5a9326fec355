"""Facts, their neighbours among the memories, and the decision about each fact."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from pipeline.domain.messages import Role, Source


class Outcome(StrEnum):
    """Effect of one fact on the memories, in the terms of the Mem0 clients."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NOOP = "NOOP"


@dataclass(frozen=True, slots=True)
class Fact:
    """A self-contained statement in the third person, with absolute dates.

    `categories` are names from the list given to the model.
    """

    text: str
    source: Source
    attributed_to: Role = Role.USER
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored memory, shown to the model together with the new facts.

    `similarity` is the cosine (-1 to 1) to the nearest new fact; 1.0 for an equal text.
    """

    memory_id: UUID
    text: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The model's decision about one fact.

    `fact` is its 0-based position; `memory_id` the target of UPDATE, DELETE and NOOP;
    `text` the memory's text after ADD or UPDATE; `reason` one sentence for the receipt.
    """

    fact: int
    outcome: Outcome
    reason: str
    text: str | None = None
    memory_id: UUID | None = None
