"""Facts, the memories near them, and what is decided about each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from pipeline.domain.messages import Role, Source


class Outcome(StrEnum):
    """What became of one fact. The four words of the Mem0 clients."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NOOP = "NOOP"


@dataclass(frozen=True, slots=True)
class Fact:
    """One self-contained statement, in the third person, with its relative dates made absolute.

    `categories` are names out of those that were asked for.
    """

    text: str
    source: Source
    attributed_to: Role = Role.USER
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored memory shown to the decider beside new facts.

    `similarity` is the cosine (-1..1) to the nearest of the new facts; 1.0 for an equal text.
    """

    memory_id: UUID
    text: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with one fact.

    `fact` is its 0-based position; `memory_id` the target of UPDATE, DELETE and NOOP;
    `text` what is stored after an ADD or UPDATE; `reason` one sentence for the receipt.
    """

    fact: int
    outcome: Outcome
    reason: str
    text: str | None = None
    memory_id: UUID | None = None
