"""From decisions to rows, as a pure function: what each fact does to the memories of its scope.

Decisions are carried out in order on a copy of the memories they touch. Where the ledger has
changed since the model looked, the rules are:

    UPDATE, DELETE or NOOP of a memory that is gone   the fact is added: nothing said is lost
    UPDATE or DELETE of an immutable memory           the fact is added beside it
    ADD or UPDATE to a text another memory holds      NOOP that names that memory
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any
from uuid import UUID

from pipeline.domain import Event, Outcome, Role, Scope
from pipeline.ports import Vector


def text_hash(text: str) -> bytes:
    """Equal for texts that differ only in case, spacing and a final full stop."""
    normal = " ".join(text.casefold().split()).rstrip(" .")
    return hashlib.blake2b(normal.encode(), digest_size=16).digest()


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


@dataclass(frozen=True, slots=True)
class Write:
    """A decision with all it takes to carry it out. `vector` belongs to `text`."""

    fact: int
    outcome: Outcome
    text: str
    fact_text: str
    reason: str
    target: UUID | None
    new_id: UUID
    vector: Vector | None
    event: Event
    message_ordinal: int
    attributed_to: Role
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Change:
    """One fact's effect: the receipt's line, and the memory's new state where it has one."""

    write: Write
    outcome: Outcome
    memory_id: UUID | None
    text: str
    reason: str
    before: Memory | None = None
    after: Memory | None = None


@dataclass(slots=True)
class Shelf:
    """The memories the writes may touch, as they stand after each write."""

    scope: Scope
    by_id: dict[UUID, Memory] = field(default_factory=dict)
    by_text: dict[bytes, UUID] = field(default_factory=dict)

    @classmethod
    def of(cls, scope: Scope, stored: Iterable[Memory]) -> Shelf:
        shelf = cls(scope)
        for memory in stored:
            shelf.put(memory)
        return shelf

    def put(self, memory: Memory) -> None:
        before = self.by_id.get(memory.id)
        if before is not None:
            self.by_text.pop(text_hash(before.text), None)
        self.by_id[memory.id] = memory
        if memory.state == "ACTIVE":
            self.by_text[text_hash(memory.text)] = memory.id

    def active(self, memory_id: UUID | None) -> Memory | None:
        memory = self.by_id.get(memory_id) if memory_id else None
        return memory if memory and memory.state == "ACTIVE" else None


def carry_out(writes: Sequence[Write], shelf: Shelf) -> list[Change]:
    """Each write's change, in order; `shelf` holds the final states afterwards."""
    return [_carry_out(write, shelf) for write in writes]


def _carry_out(write: Write, shelf: Shelf) -> Change:
    if write.outcome is Outcome.ADD:
        return _add(write, shelf, write.text, write.reason)
    target = shelf.active(write.target)
    if write.outcome is Outcome.NOOP and (target or write.target is None):
        return Change(write, Outcome.NOOP, write.target, write.fact_text, write.reason)
    if target is None:
        return _add(write, shelf, write.fact_text, f"{write.reason} (Its memory is gone.)")
    if target.immutable:
        return _add(write, shelf, write.fact_text, f"{write.reason} (Its memory is immutable.)")
    if write.outcome is Outcome.DELETE:
        return _change(write, shelf, target, replace(target, state="RETIRED"))
    return _update(write, shelf, target)


def _add(write: Write, shelf: Shelf, text: str, reason: str) -> Change:
    if (same := shelf.by_text.get(text_hash(text))) is not None:
        return Change(write, Outcome.NOOP, same, text, f"{reason} (This text is already stored.)")
    options = write.event.options
    memory = Memory(
        id=write.new_id,
        lane_id=shelf.scope.lane_id,
        scope=shelf.scope,
        text=text,
        metadata=dict(options.metadata),
        attributed_to=write.attributed_to,
        state="ACTIVE",
        immutable=options.immutable,
        expiration_date=options.expiration_date,
        version=1,
        event_id=write.event.id,
        message_ordinal=write.message_ordinal,
        valid_from=write.said_at,
    )
    shelf.put(memory)
    return Change(write, Outcome.ADD, memory.id, text, reason, after=memory)


def _update(write: Write, shelf: Shelf, target: Memory) -> Change:
    same = shelf.by_text.get(text_hash(write.text))
    if same is not None:
        return Change(
            write, Outcome.NOOP, same, write.text, f"{write.reason} (This text is already stored.)"
        )
    return _change(
        write,
        shelf,
        target,
        replace(
            target,
            text=write.text,
            metadata={**target.metadata, **write.event.options.metadata},
            expiration_date=write.event.options.expiration_date or target.expiration_date,
        ),
    )


def _change(write: Write, shelf: Shelf, before: Memory, after: Memory) -> Change:
    after = replace(
        after,
        version=before.version + 1,
        event_id=write.event.id,
        message_ordinal=write.message_ordinal,
        valid_from=write.said_at,
    )
    shelf.put(after)
    return Change(write, write.outcome, after.id, after.text, write.reason, before, after)
