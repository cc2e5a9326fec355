"""Decisions with all values needed to apply them, and the memories that they change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from uuid import UUID

from pipeline.domain.conflicts import OpenConflict
from pipeline.domain.events import Event
from pipeline.domain.facts import Fact, Outcome
from pipeline.domain.memories import Memory
from pipeline.domain.scope import Scope
from pipeline.domain.suggestions import Suggestion
from pipeline.domain.vectors import Vector
from pipeline.text.equality import text_hash


@dataclass(frozen=True, slots=True)
class Write:
    """A decision with all values needed to apply it.

    `position` is that of `fact` in its batch. `text` is what the model wants to store, and `vector`
    its embedding; `fact_vector` is the embedding of the fact's own text. `similarity`: cosine of
    the target and the nearest fact of the batch. `appended`: it was not compared with the memories.
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
    similarity: float = 0.0
    appended: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """Effect of one fact: a line of the receipt, and the memory's new state if there is one.

    `before`: the memory before the change or, for a NOOP, the memory with that text. `after`: the
    new state. `vector`: embedding of the new text; None if the text did not change. `restated`: the
    memory of a NOOP with the time of this later statement. `suggestion`: the change that was
    withheld.
    """

    write: Write
    outcome: Outcome
    memory_id: UUID | None
    text: str
    reason: str
    before: Memory | None = None
    after: Memory | None = None
    vector: Vector | None = field(default=None, compare=False)
    restated: Memory | None = None
    suggestion: Suggestion | None = None
    conflict: OpenConflict | None = None


@dataclass(slots=True)
class ScopeMemories:
    """Working copy of the memories that the writes name or repeat; each write updates it.

    `by_text`: id of the active memory with this text hash. `by_fact`: last change made for a fact
    of this batch, by the hash of the fact's text. `reworded`: memories with a new text of this
    batch. `retired`: number of DELETEs allowed to each event. `forgotten`: texts that an event may
    not learn again, as pairs of its id and the text's hash. `today`: the day behind which an
    expiration date is over; None: no memory has expired.
    """

    scope: Scope
    by_id: dict[UUID, Memory] = field(default_factory=dict)
    by_text: dict[bytes, UUID] = field(default_factory=dict)
    by_fact: dict[bytes, Change] = field(default_factory=dict)
    reworded: set[UUID] = field(default_factory=set)
    retired: Counter[UUID] = field(default_factory=Counter)
    forgotten: frozenset[tuple[UUID, bytes]] = frozenset()
    today: date | None = None

    @classmethod
    def of(
        cls,
        scope: Scope,
        stored: Iterable[Memory],
        forgotten: frozenset[tuple[UUID, bytes]] = frozenset(),
        today: date | None = None,
    ) -> ScopeMemories:
        """A working copy of the stored memories."""
        copy = cls(scope, forgotten=forgotten, today=today)
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

    def is_over(self, expiration_date: date | None) -> bool:
        """Tell if a memory with this expiration date has expired."""
        return bool(self.today and expiration_date and expiration_date < self.today)

    def about(self, slot: str | None) -> list[Memory]:
        """The active memories about an attribute that have not expired, the oldest first."""
        active = [m for m in self.by_id.values() if m.state == "ACTIVE"]
        same = [m for m in active if m.slot == slot and not self.is_over(m.expiration_date)]
        return sorted(same, key=lambda m: (m.said_at, m.id)) if slot else []
