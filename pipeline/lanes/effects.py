"""Effects of a stage besides its output: computed by the stage, written when it finishes.

A stage only reads. Its effects, its output and the lane's next stage are one commit, so it takes
effect once or not at all, and no transaction is open while a model is called.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol
from uuid import UUID

from sqlalchemy import TextClause

from pipeline.domain.conflicts import OpenConflict
from pipeline.domain.events import Event
from pipeline.domain.facts import Fact
from pipeline.domain.graph.values import (
    EndedEdge,
    EndedRelation,
    GraphLine,
    GraphPlan,
    NewEdge,
    Node,
)
from pipeline.domain.lanes import Batch
from pipeline.domain.memories import Memory, structure
from pipeline.domain.suggestions import Suggestion
from pipeline.domain.vectors import Vector, to_bytes
from pipeline.domain.writes import Change
from pipeline.lanes.sql import statement
from pipeline.ledger.row_values import columns_of, json_rows
from pipeline.text import terms
from pipeline.text.equality import text_hash


class Effects(Protocol):
    """Writes of a stage. `query` is the statement that finishes the stage."""

    query: ClassVar[TextClause]

    @property
    def touched(self) -> Sequence[UUID]:
        """Ids of memories whose vectors must be written to the index."""

    @property
    def characters(self) -> int:
        """Characters of text whose words are cut, which takes 1 µs each."""

    def values(self) -> dict[str, Any]:
        """Parameters of `query`, besides those of every stage."""


@dataclass(frozen=True, slots=True)
class MemoryEffects:
    """Changes of memories. `seen`: versions of the memories that the changes are based on.

    `ended`: relations that end with them, or that others of them take over, if no stage of the
    graph follows.
    """

    query: ClassVar[TextClause] = statement("finish_apply")

    changes: Sequence[Change]
    seen: Mapping[UUID, int]
    embedder: str
    ended: Sequence[EndedRelation] = ()

    @property
    def touched(self) -> Sequence[UUID]:
        """Ids of all changed memories."""
        return tuple(dict.fromkeys(c.after.id for c in self.changes if c.after is not None))

    @property
    def characters(self) -> int:
        """Characters of the new states."""
        return sum(len(c.after.text) for c in self.changes if c.after is not None)

    def values(self) -> dict[str, Any]:
        """Parameters of finish_apply: new states, history entries and receipt lines."""
        last = {
            memory.id: memory
            for change in self.changes
            for memory in (change.after, change.restated)
            if memory is not None
        }
        vectors = {c.after.id: c.vector for c in self.changes if c.after and c.vector is not None}
        return {
            "seen_ids": list(self.seen),
            "seen_versions": list(self.seen.values()),
            "embedder": self.embedder,
            "memories": json_rows(
                [_state(memory, vectors.get(memory_id)) for memory_id, memory in last.items()]
            ),
            "passed": json_rows(
                [
                    _state(change.after, change.vector)
                    for change in self.changes
                    if change.after and change.after.version != last[change.after.id].version
                ]
            ),
            "history": json_rows([_entry(change) for change in self.changes if change.after]),
            "receipt": json_rows(self.receipt),
            "suggestions": json_rows([_suggestion(s) for s in self._suggestions()]),
            "conflicts": json_rows(
                [columns_of(c, "id", "slot", "event_id") for c in self._conflicts()]
            ),
            "conflict_members": json_rows(_members(self._conflicts())),
            "ended": json_rows([asdict(relation) for relation in self.ended]),
        }

    @property
    def receipt(self) -> list[dict[str, Any]]:
        """The receipt lines, as JSON objects."""
        return [_line(place, change) for place, change in enumerate(self.changes)]

    def _suggestions(self) -> list[Suggestion]:
        """The withheld changes, each once."""
        withheld = (c.suggestion for c in self.changes if c.suggestion is not None)
        return list({suggestion.id: suggestion for suggestion in withheld}.values())

    def _conflicts(self) -> list[OpenConflict]:
        """The conflicts that the changes raise."""
        return [c.conflict for c in self.changes if c.conflict is not None]


@dataclass(frozen=True, slots=True)
class AnswerEffects:
    """Sources of an answer to an export or a summary. `memory_ids`: the memories that it read."""

    query: ClassVar[TextClause] = statement("finish_answer")
    touched: ClassVar[Sequence[UUID]] = ()
    characters: ClassVar[int] = 0

    memory_ids: Sequence[UUID]

    def values(self) -> dict[str, Any]:
        """Parameters of finish_answer."""
        return {"memory_ids": list(self.memory_ids)}


@dataclass(frozen=True, slots=True)
class ProfileEffects:
    """Fields of a user's profile: names, values and the ids of their memories.

    `changes`: number of changes of the user's memories before they were read.
    """

    query: ClassVar[TextClause] = statement("finish_profile")
    touched: ClassVar[Sequence[UUID]] = ()
    characters: ClassVar[int] = 0

    event_id: UUID
    changes: int
    fields: Sequence[Mapping[str, Any]]

    def values(self) -> dict[str, Any]:
        """Parameters of finish_profile."""
        fields = json_rows([dict(field) for field in self.fields])
        return {"event_id": self.event_id, "changes": self.changes, "fields": fields}


@dataclass(frozen=True, slots=True)
class GraphEffects:
    """Changes of the graph.

    `facts`: the facts that the plan refers to by position. `memories`: the memory of each fact.
    """

    query: ClassVar[TextClause] = statement("finish_relate")
    touched: ClassVar[Sequence[UUID]] = ()
    characters: ClassVar[int] = 0

    batch: Batch
    facts: Sequence[Fact]
    memories: Sequence[UUID]
    plan: GraphPlan

    def values(self) -> dict[str, Any]:
        """Parameters of finish_relate: nodes, relations and receipt lines."""
        plan = self.plan
        return {
            "event_ids": [event.id for event in self.batch.events],
            "memory_ids": [*self.memories, *(e.memory_id for e in plan.edges if e.memory_id)],
            "entities": json_rows([_node(node) for node in plan.nodes]),
            "merges": json_rows(
                [{"id": m.node_id, "merged_into": m.into, "reason": m.reason} for m in plan.merges]
            ),
            "relations": json_rows([self._edge(edge) for edge in plan.edges]),
            "ended": json_rows([self._ended(edge) for edge in plan.ended]),
            "lines": json_rows([self._line(place, line) for place, line in enumerate(plan.lines)]),
        }

    def _event(self, fact: int) -> Event:
        return self.batch.events[self.facts[fact].source.event]

    def _origin(self, fact: int) -> dict[str, Any]:
        """The event, message and memory of a fact."""
        return {
            "event_id": self._event(fact).id,
            "message_ordinal": self.facts[fact].source.message,
            "memory_id": self.memories[fact] if self.memories else None,
        }

    def _edge(self, edge: NewEdge) -> dict[str, Any]:
        """Build the row of a new relation."""
        return {
            **columns_of(edge, "id", "source_id", "relation", "destination_id"),
            **columns_of(edge, "valid_from", "valid_to"),
            "ended_by": edge.followed_by
            or (None if edge.ended_by is None else self._event(edge.ended_by).id),
            **self._origin(edge.fact),
            **({"memory_id": edge.memory_id} if edge.memory_id else {}),
        }

    def _ended(self, edge: EndedEdge) -> dict[str, Any]:
        """Build the changed columns of a relation that ends."""
        origin = self._origin(edge.fact)
        return {
            "id": edge.id,
            "valid_to": edge.valid_to,
            "ended_by": edge.followed_by or origin["event_id"],
            "memory_id": origin["memory_id"],
        }

    def _line(self, place: int, line: GraphLine) -> dict[str, Any]:
        """Build the receipt line of a change of the graph."""
        return {
            "place": place,
            **columns_of(line, "outcome", "relation_id", "source", "relation", "destination"),
            "reason": line.reason,
            **self._origin(line.fact),
        }


def _state(memory: Memory, vector: Vector | None) -> dict[str, Any]:
    """Build the memory's row after the batch; no vector means that its text did not change."""
    return {
        **columns_of(memory, "id", "version", "state", "immutable", "superseded_by", "appended"),
        **columns_of(memory, "text", "metadata", "categories", "attributed_to", "slot"),
        **columns_of(memory, "event_id", "message_ordinal", "expiration_date"),
        **columns_of(memory, "said_at", "valid_from", "created_at"),
        **structure(memory),
        "text_hash": text_hash(memory.text).hex(),
        "terms": terms.terms(memory.text),
        "embedding": None if vector is None else base64.b64encode(to_bytes(vector)).decode(),
    }


def _entry(change: Change) -> dict[str, Any]:
    """A state of a memory, for its history. A statement that is only history has no new text."""
    after = change.after
    assert after is not None
    before = after if after.superseded_by is not None else change.before
    return {
        "memory_id": after.id,
        "version": after.version,
        "outcome": change.outcome,
        "old_text": before.text if before else None,
        "new_text": after.text if after.state == "ACTIVE" else None,
        "reason": change.reason,
        **columns_of(after, "metadata", "expiration_date", "event_id", "said_at", "valid_from"),
        "message_ordinal": after.message_ordinal if after.event_id else None,
        "structure": structure(after),
    }


def _line(place: int, change: Change) -> dict[str, Any]:
    """Build the receipt line of a fact, for the event of its message."""
    return {
        "place": place,
        "event_id": change.write.event.id,
        "outcome": change.outcome,
        "memory_id": change.memory_id,
        "text": change.text,
        "previous_text": change.before.text if change.before else None,
        "reason": change.reason,
        "message_ordinal": change.write.fact.source.message,
        "suggestion_id": change.suggestion.id if change.suggestion else None,
        "conflict_id": change.conflict.id if change.conflict else None,
    }


def _members(raised: Sequence[OpenConflict]) -> list[dict[str, Any]]:
    """Build two rows for each pair of statements, in their last state."""
    pairs = [
        (conflict.id, *pair)
        for conflict in raised
        for other in conflict.against
        for pair in ((conflict.memory, other), (other, conflict.memory))
    ]
    last = {(conflict_id, memory.id, other.id): memory for conflict_id, memory, other in pairs}
    return [
        {
            "conflict_id": conflict_id,
            "memory_id": memory_id,
            "against_id": against_id,
            "text_hash": text_hash(memory.text).hex(),
        }
        for (conflict_id, memory_id, against_id), memory in last.items()
    ]


def _suggestion(suggestion: Suggestion) -> dict[str, Any]:
    """Build the row of a suggestion. Its id is the same on every retry."""
    return {
        **columns_of(suggestion, "id", "kind", "event_id"),
        **columns_of(suggestion, "fact_text", "proposed_text", "reason"),
        "targets": [
            {"memory_id": memory_id, "version": version}
            for memory_id, version in suggestion.targets
        ],
        "content_hash": suggestion.content_hash.hex(),
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        **columns_of(node, "id", "name", "kind", "qualifier"),
        "name_key": node.key,
        "plain_name": node.plain,
    }
