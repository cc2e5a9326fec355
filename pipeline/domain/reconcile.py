"""From decisions to rows, as a pure function: what each fact does to the memories of its scope.

Decisions are carried out in order on a copy of the memories they touch. Where the ledger has
changed since the model looked, the rules are:

    UPDATE, DELETE or NOOP of a memory that is gone   the fact is added: nothing said is lost
    UPDATE or DELETE of an immutable memory           the fact is added beside it
    any of a memory whose text a person changed       decided anew; in the end added beside it
    ADD or UPDATE to a text another memory holds      NOOP that names that memory
    NOOP that names nothing, of a fact said before    NOOP that names what the fact before touched
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from pipeline.domain.events import Event
from pipeline.domain.facts import Outcome
from pipeline.domain.memories import Memory
from pipeline.domain.messages import Role
from pipeline.domain.scope import Scope
from pipeline.domain.vectors import Vector
from pipeline.text.equality import text_hash


@dataclass(frozen=True, slots=True)
class Write:
    """A decision with all it takes to carry it out.

    `vector` belongs to `text`, what a model would store; `fact_vector` to `fact_text`, what was
    said.
    """

    fact: int
    outcome: Outcome
    text: str
    fact_text: str
    reason: str
    target: UUID | None
    new_id: UUID
    vector: Vector = field(compare=False)
    fact_vector: Vector = field(compare=False)
    event: Event
    message_ordinal: int
    attributed_to: Role
    said_at: datetime
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """One fact's effect: the receipt's line, and the memory's new state where it has one.

    `before` is the memory as it was: the one changed, or, for a NOOP, the one that said it already.
    `vector` belongs to the new state's text, and is None where the text did not change.
    """

    write: Write
    outcome: Outcome
    memory_id: UUID | None
    text: str
    reason: str
    before: Memory | None = None
    after: Memory | None = None
    vector: Vector | None = field(default=None, compare=False)


@dataclass(slots=True)
class Shelf:
    """The memories the writes may touch, as they stand after each write."""

    scope: Scope
    by_id: dict[UUID, Memory] = field(default_factory=dict)
    by_text: dict[bytes, UUID] = field(default_factory=dict)
    # What each fact of this batch came to, by its text.
    told: dict[bytes, Change] = field(default_factory=dict)

    @classmethod
    def of(cls, scope: Scope, stored: Iterable[Memory]) -> Shelf:
        shelf = cls(scope)
        for memory in stored:
            shelf.put(memory)
        return shelf

    def put(self, memory: Memory) -> None:
        before = self.by_id.get(memory.id)
        self.by_id[memory.id] = memory
        if before is not None:
            self._release(text_hash(before.text), memory.id)
        if memory.state == "ACTIVE":
            self.by_text.setdefault(text_hash(memory.text), memory.id)

    def _release(self, digest: bytes, memory_id: UUID) -> None:
        """Pass the text on to another memory that holds it too, as an edit by a person may."""
        if self.by_text.get(digest) != memory_id:
            return
        del self.by_text[digest]
        for other in self.by_id.values():
            if other.state == "ACTIVE" and text_hash(other.text) == digest:
                self.by_text[digest] = other.id
                return

    def active(self, memory_id: UUID | None) -> Memory | None:
        memory = self.by_id.get(memory_id) if memory_id else None
        return memory if memory and memory.state == "ACTIVE" else None


def beside(write: Write) -> Write:
    """The write as an ADD of its fact: a person has changed the memory it was meant for."""
    added = _as_said(write, "A person has changed its memory.")
    return replace(added, outcome=Outcome.ADD, target=None)


def carry_out(writes: Sequence[Write], shelf: Shelf) -> list[Change]:
    """Each write's change, in order; `shelf` holds the final states afterwards."""
    changes = []
    for write in writes:
        change = replace(_carry_out(write, shelf), write=write)
        if change.outcome is not Outcome.NOOP or write.target is not None:
            shelf.told[text_hash(write.fact_text)] = change
        changes.append(change)
    return changes


def _carry_out(write: Write, shelf: Shelf) -> Change:
    if write.outcome is Outcome.ADD:
        return _add(write, shelf)
    if write.outcome is Outcome.NOOP and write.target is None:
        return _told_before(write, shelf)
    target = shelf.active(write.target)
    if target is None:
        return _add(_as_said(write, "Its memory is gone."), shelf)
    if write.outcome is Outcome.NOOP:
        return Change(write, Outcome.NOOP, target.id, write.fact_text, write.reason, target)
    return _change_of(target, write, shelf)


def _told_before(write: Write, shelf: Shelf) -> Change:
    """A NOOP that names what the same fact touched, unless another fact has undone that since."""
    before = shelf.told.get(text_hash(write.fact_text))
    memory_id = before.memory_id if before else None
    if (
        before
        and before.outcome is not Outcome.DELETE
        and memory_id
        and not shelf.active(memory_id)
    ):
        return _add(_as_said(write, "What it repeats is gone."), shelf)
    return Change(write, Outcome.NOOP, memory_id, write.fact_text, write.reason)


def _change_of(target: Memory, write: Write, shelf: Shelf) -> Change:
    if target.immutable:
        return _add(_as_said(write, "Its memory is immutable."), shelf)
    if write.outcome is Outcome.DELETE:
        return _change(write, shelf, target, replace(target, state="RETIRED"))
    return _update(write, shelf, target)


def _as_said(write: Write, why: str) -> Write:
    """The write as an ADD of the fact itself: what was meant for a memory is not lost with it."""
    return replace(
        write, text=write.fact_text, vector=write.fact_vector, reason=f"{write.reason} ({why})"
    )


def _add(write: Write, shelf: Shelf) -> Change:
    if (known := _known(write, shelf)) is not None:
        return known
    options = write.event.options
    memory = Memory(
        id=write.new_id,
        lane_id=shelf.scope.lane_id,
        scope=shelf.scope,
        text=write.text,
        metadata=dict(options.metadata),
        attributed_to=write.attributed_to,
        state="ACTIVE",
        immutable=options.immutable,
        expiration_date=options.expiration_date,
        version=1,
        event_id=write.event.id,
        message_ordinal=write.message_ordinal,
        valid_from=write.said_at,
        categories=write.categories,
    )
    shelf.put(memory)
    return Change(
        write, Outcome.ADD, memory.id, memory.text, write.reason, after=memory, vector=write.vector
    )


def _update(write: Write, shelf: Shelf, target: Memory) -> Change:
    if (known := _known(write, shelf)) is not None:
        return known
    options = write.event.options
    after = replace(
        target,
        text=write.text,
        metadata={**target.metadata, **options.metadata},
        expiration_date=options.expiration_date or target.expiration_date,
        categories=write.categories or target.categories,
    )
    return replace(_change(write, shelf, target, after), vector=write.vector)


def _known(write: Write, shelf: Shelf) -> Change | None:
    """A NOOP where a memory of the scope holds the text already."""
    same = shelf.by_text.get(text_hash(write.text))
    if same is None:
        return None
    reason = f"{write.reason} (This text is already stored.)"
    return Change(write, Outcome.NOOP, same, write.text, reason, shelf.by_id[same])


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
