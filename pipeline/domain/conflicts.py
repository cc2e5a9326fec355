"""Open conflicts: statements that cannot both hold, and nothing decides between them.

Two statements about one single-valued attribute, such as a residence, cannot both hold if they
give it different values. Usually one of them counts:

    said at different times by one speaker       the later one
    one speaker is the subject itself            the subject's own statement
    each holds from a time of its own            both: they are about different times
    one of them is of the assistant              the user's
    two messages of one event                    the later one

Nothing decides, and both are kept, if two speakers, neither of them the subject, disagree, or if
one speaker said both at the same time in different events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from pipeline.domain.consolidation import conservation
from pipeline.domain.facts import Fact
from pipeline.domain.memories import Memory
from pipeline.domain.messages import Role
from pipeline.text.statements import polarity, slots
from pipeline.text.statements.forget_requests import asks_to_forget
from pipeline.text.statements.slots import Cardinality
from pipeline.text.statements.values import ValueKind, stated


class ConflictState(StrEnum):
    """State of a conflict. RESOLVED: a person resolved it, or a later statement did."""

    OPEN = "OPEN"
    RESOLVED = "RESOLVED"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement to compare. `valid_from`: None if it names no time in the world."""

    text: str
    slot: str | None
    speaker: str | None
    role: Role
    said_at: datetime
    valid_from: datetime | None
    event_id: UUID | None
    cardinality: Cardinality | None = None

    @staticmethod
    def of(memory: Memory) -> Statement:
        """The statement of a memory."""
        valid_from = memory.valid_from if memory.valid_from != memory.said_at else None
        return _statement(memory, memory.said_at, valid_from, memory.event_id)

    @staticmethod
    def of_fact(fact: Fact, said_at: datetime, event_id: UUID) -> Statement:
        """The statement of a new fact."""
        return _statement(fact, said_at, fact.valid_from, event_id)

    @property
    def source(self) -> str:
        """Key of the speaker, comparable with subjects; `user` for a user without a name."""
        return slots.subject_key(self.speaker or slots.USER)

    @property
    def subject(self) -> str:
        """Key of the subject of the slot."""
        return (self.slot or "").partition(slots.SEPARATOR)[0]

    @property
    def is_of_the_subject(self) -> bool:
        """True if the subject itself said it."""
        return _same_person(self.source, self.subject)


def _statement(
    of: Fact | Memory, said_at: datetime, valid_from: datetime | None, event_id: UUID | None
) -> Statement:
    speaker, role = of.speaker, of.attributed_to
    return Statement(of.text, of.slot, speaker, role, said_at, valid_from, event_id, of.cardinality)


@dataclass(frozen=True, slots=True)
class OpenConflict:
    """A conflict to store: a new statement, and the memories that it contradicts."""

    id: UUID
    slot: str
    event_id: UUID
    memory: Memory
    against: tuple[Memory, ...]


def undecided(first: Statement, other: Statement) -> bool:
    """Tell if two statements cannot both hold and nothing decides between them."""
    if not disagree(first, other):
        return False
    if _same_person(first.source, other.source):  # at once, not one after the other in one event
        return first.said_at == other.said_at and first.event_id != other.event_id
    return not first.is_of_the_subject and not other.is_of_the_subject


def disagree(first: Statement, other: Statement) -> bool:
    """Tell if two statements of users give one single-valued attribute different values.

    A request to forget gives it none.
    """
    requests = asks_to_forget(first.text) or asks_to_forget(other.text)
    known = first.cardinality or other.cardinality
    if requests or first.slot != other.slot or not slots.single_valued(first.slot, known):
        return False
    if first.role is not Role.USER or other.role is not Role.USER:
        return False
    if first.valid_from and other.valid_from and first.valid_from != other.valid_from:
        return False
    same = _same_value(first.text, other.text)
    match polarity.takes_back(first.text), polarity.takes_back(other.text):
        case True, True:
            return False
        case False, False:
            return not same
        case _:
            return same


def decides(fact: Statement, memory: Statement) -> bool:
    """Tell if a later statement ends a memory's part in a conflict.

    It gives the attribute another value, and is of the subject or of the memory's own speaker.
    """
    entitled = fact.is_of_the_subject or _same_person(fact.source, memory.source)
    return entitled and fact.said_at > memory.said_at and disagree(fact, memory)


def question(statements: Sequence[tuple[str, str | None, datetime]]) -> str:
    """The question to ask the person, from texts with their speakers and times."""
    parts = []
    for text, speaker, said_at in statements:
        source = f"{speaker}, {said_at:%Y-%m-%d}" if speaker else f"{said_at:%Y-%m-%d}"
        parts.append(f"“{text}” ({source})")
    return f"Which is right: {' or '.join(parts)}?"


def _same_person(source: str, other: str) -> bool:
    """Tell if two names mean one person: equal, or one is the first name of the other."""
    first, second = source.split(), other.split()
    shorter = min(len(first), len(second))
    return bool(shorter) and first[:shorter] == second[:shorter]


def _same_value(first: str, other: str) -> bool:
    """Tell if two texts about one attribute give it the same value."""
    if conservation.keeps_all(first, other) or conservation.keeps_all(other, first):
        return True
    values, others = _values(first), _values(other)
    if values or others:
        return bool(values) and bool(others) and (values <= others or others <= values)
    words, other_words = conservation.matter(first), conservation.matter(other)
    return words <= other_words or other_words <= words


def _values(text: str) -> set[tuple[ValueKind, str]]:
    return {(value.kind, value.key) for value in stated(text).values if not value.leads}
