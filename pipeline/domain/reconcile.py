"""Pure function from decisions to changes of memories.

Decisions are applied in order to a copy of the memories they name. If the ledger has changed since
the model read it, these rules apply:

    UPDATE, DELETE or NOOP of a deleted memory        ADD: no fact is lost
    UPDATE or DELETE of an immutable memory           ADD
    any, of a memory that a user has edited           decide again; after some attempts, ADD
    ADD or UPDATE with the text of another memory     NOOP that names that memory
    NOOP without a memory, of a repeated fact         NOOP that names the memory of the first one
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from pipeline.domain.events import Event
from pipeline.domain.facts import Fact, FactKind, Outcome
from pipeline.domain.memories import Memory, structure
from pipeline.domain.scope import Scope
from pipeline.domain.vectors import Vector
from pipeline.text.equality import text_hash


@dataclass(frozen=True, slots=True)
class Write:
    """A decision with all values needed to apply it.

    `position` is that of `fact` in its batch. `text` is what the model wants to store, and `vector`
    its embedding; `fact_vector` is the embedding of the fact's own text.
    """

    position: int
    fact: Fact
    outcome: Outcome
    text: str
    reason: str
    target: UUID | None
    new_id: UUID
    vector: Vector = field(compare=False)
    fact_vector: Vector = field(compare=False)
    event: Event
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Change:
    """Effect of one fact: a line of the receipt, and the memory's new state if there is one.

    `before`: the memory before the change or, for a NOOP, the memory with that text. `after`: the
    new state. `vector`: embedding of the new text; None if the text did not change.
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
class ScopeMemories:
    """Working copy of the memories that the writes name or repeat; each write updates it.

    `by_text`: id of the active memory with this text hash. `by_fact`: last change made for a fact
    of this batch, by the hash of the fact's text.
    """

    scope: Scope
    by_id: dict[UUID, Memory] = field(default_factory=dict)
    by_text: dict[bytes, UUID] = field(default_factory=dict)
    by_fact: dict[bytes, Change] = field(default_factory=dict)

    @classmethod
    def of(cls, scope: Scope, stored: Iterable[Memory]) -> ScopeMemories:
        """A working copy of the stored memories."""
        copy = cls(scope)
        for memory in stored:
            copy.put(memory)
        return copy

    def put(self, memory: Memory) -> None:
        """Insert a memory, or replace its earlier state."""
        before = self.by_id.get(memory.id)
        self.by_id[memory.id] = memory
        if before is not None:
            self._release(text_hash(before.text), memory.id)
        if memory.state == "ACTIVE":
            self.by_text.setdefault(text_hash(memory.text), memory.id)

    def _release(self, digest: bytes, memory_id: UUID) -> None:
        """Index the text under another active memory that has it, as an edit can cause."""
        if self.by_text.get(digest) != memory_id:
            return
        del self.by_text[digest]
        for other in self.by_id.values():
            if other.state == "ACTIVE" and text_hash(other.text) == digest:
                self.by_text[digest] = other.id
                return

    def active(self, memory_id: UUID | None) -> Memory | None:
        """The memory with this id if it is active, else None."""
        memory = self.by_id.get(memory_id) if memory_id else None
        return memory if memory and memory.state == "ACTIVE" else None


def add_instead(write: Write) -> Write:
    """Turn a write into an ADD of its fact, because a user edited the memory it names."""
    added = _with_fact_text(write, "A person has changed its memory.")
    return replace(added, outcome=Outcome.ADD, target=None)


def apply_writes(writes: Sequence[Write], memories: ScopeMemories) -> list[Change]:
    """Apply the writes in order: one change per write. `memories` then has the final states."""
    changes = []
    for write in writes:
        change = replace(_apply(write, memories), write=write)
        if change.outcome is not Outcome.NOOP or write.target is not None:
            memories.by_fact[text_hash(write.fact.text)] = change
        changes.append(change)
    return changes


def _apply(write: Write, memories: ScopeMemories) -> Change:
    if write.outcome is Outcome.ADD:
        return _add(write, memories)
    if write.outcome is Outcome.NOOP and write.target is None:
        return _repeat(write, memories)
    target = memories.active(write.target)
    if target is None:
        return _add(_with_fact_text(write, "Its memory is gone."), memories)
    if write.outcome is Outcome.NOOP:
        return Change(write, Outcome.NOOP, target.id, write.fact.text, write.reason, target)
    return _change_target(target, write, memories)


def _change_target(target: Memory, write: Write, memories: ScopeMemories) -> Change:
    if target.immutable:
        return _add(_with_fact_text(write, "Its memory is immutable."), memories)
    if write.outcome is Outcome.DELETE:
        return _next_version(write, memories, target, replace(target, state="RETIRED"))
    return _update(write, memories, target)


def _repeat(write: Write, memories: ScopeMemories) -> Change:
    """A NOOP that names the memory of the same fact, or an ADD if that memory was deleted since."""
    earlier = memories.by_fact.get(text_hash(write.fact.text))
    memory_id = earlier.memory_id if earlier else None
    if (
        earlier
        and earlier.outcome is not Outcome.DELETE
        and memory_id
        and not memories.active(memory_id)
    ):
        return _add(_with_fact_text(write, "What it repeats is gone."), memories)
    return Change(write, Outcome.NOOP, memory_id, write.fact.text, write.reason)


def _with_fact_text(write: Write, why: str) -> Write:
    """The write with the fact's own text, and `why` appended to its reason."""
    return replace(
        write, text=write.fact.text, vector=write.fact_vector, reason=f"{write.reason} ({why})"
    )


def _add(write: Write, memories: ScopeMemories) -> Change:
    """Add a memory; a NOOP if an active memory has the text."""
    if (same := _same_text(write, memories)) is not None:
        return same
    options = write.event.options
    memory = Memory(
        id=write.new_id,
        lane_id=memories.scope.lane_id,
        scope=memories.scope,
        text=write.text,
        metadata=dict(options.metadata),
        attributed_to=write.fact.attributed_to,
        state="ACTIVE",
        immutable=options.immutable,
        expiration_date=options.expiration_date,
        version=1,
        event_id=write.event.id,
        message_ordinal=write.fact.source.message,
        said_at=write.said_at,
        valid_from=write.fact.valid_from or write.said_at,
        categories=write.fact.categories,
        **structure(write.fact),
    )
    memories.put(memory)
    return Change(
        write, Outcome.ADD, memory.id, memory.text, write.reason, after=memory, vector=write.vector
    )


def _update(write: Write, memories: ScopeMemories, target: Memory) -> Change:
    """Change the target's text, structure and options; a NOOP if an active memory has the text."""
    if (same := _same_text(write, memories)) is not None:
        return same
    options = write.event.options
    after = replace(
        target,
        text=write.text,
        metadata={**target.metadata, **options.metadata},
        expiration_date=options.expiration_date or target.expiration_date,
        categories=write.fact.categories or target.categories,
        valid_from=write.fact.valid_from or write.said_at,
        **_restated(write.fact, target),
    )
    return replace(_next_version(write, memories, target, after), vector=write.vector)


def _restated(fact: Fact, target: Memory) -> dict[str, Any]:
    """The structure of an updated memory: the fact's, as far as it has one."""
    if fact.kind is FactKind.OTHER and fact.slot is None:
        return {"speaker": fact.speaker, "confidence": fact.confidence}
    slotless = {"subject": target.subject, "attribute": target.attribute}
    return structure(fact) | (slotless if fact.slot is None else {})


def _same_text(write: Write, memories: ScopeMemories) -> Change | None:
    """A NOOP if an active memory of the scope has the text, else None."""
    memory_id = memories.by_text.get(text_hash(write.text))
    if memory_id is None:
        return None
    reason = f"{write.reason} (This text is already stored.)"
    memory = memories.by_id[memory_id]
    return Change(write, Outcome.NOOP, memory_id, write.text, reason, memory)


def _next_version(write: Write, memories: ScopeMemories, before: Memory, after: Memory) -> Change:
    after = replace(
        after,
        version=before.version + 1,
        event_id=write.event.id,
        message_ordinal=write.fact.source.message,
        said_at=write.said_at,
    )
    memories.put(after)
    return Change(write, write.outcome, after.id, after.text, write.reason, before, after)
