"""Values of the graph: entities, relations, and changes to them.

A node is an entity of one scope. Nodes that name the same thing are merged: they keep their own
relations, and reads show all of them under the node that they are merged into, their `root`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid5

from pipeline.domain.facts import Fact
from pipeline.domain.scope import Scope


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing as a model names it; `kind` is a lower-case word such as person or place."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A directed edge: source --relation--> destination.

    `fact` is the 0-based position of the fact that states it.
    """

    source: Entity
    relation: str
    destination: Entity
    fact: int


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """A current edge of the graph, shown to the model, which can end it."""

    relation_id: UUID
    source: str
    relation: str
    destination: str


@dataclass(frozen=True, slots=True)
class EdgeEnding:
    """A current edge that a fact ends. `fact` is its 0-based position."""

    relation_id: UUID
    fact: int


@dataclass(frozen=True, slots=True)
class GraphChanges:
    """A model's answer: the edges that facts state, and the current edges that they end.

    `ended`: edges that end by one of the facts, in outputs of earlier releases. `left_out`: the
    fault of each row of the answer that is not among the changes, without the text of the row.
    """

    relations: tuple[Relation, ...] = ()
    ended: tuple[UUID, ...] = ()
    endings: tuple[EdgeEnding, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphTypes:
    """Types of entities and relations that a project adds, each with its description."""

    entities: Mapping[str, str] = field(default_factory=dict)
    relations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RelationRequest:
    """Facts to relate.

    `current`: current edges near the facts. `vocabulary`: names of relations that the project uses.
    """

    facts: Sequence[Fact]
    current: Sequence[StoredRelation] = ()
    types: GraphTypes = field(default_factory=GraphTypes)
    vocabulary: Sequence[str] = ()

    @property
    def texts(self) -> list[str]:
        """The texts of the facts."""
        return [fact.text for fact in self.facts]


class GraphStatus(StrEnum):
    """End of an event's graph. PARTIAL: invalid rows of the model's answer are left out."""

    SUCCEEDED = "SUCCEEDED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"


class GraphOutcome(StrEnum):
    """Effect of a fact on one edge of the graph."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    INVALIDATE = "INVALIDATE"
    NOOP = "NOOP"


@dataclass(frozen=True, slots=True)
class Node:
    """An entity of a scope.

    `key`: unique in the scope. `plain`: its name without case, accents and punctuation.
    `qualifier`: the role that tells it from another person of the same name. `root`: the node
    that it is merged into; None for itself. `mentions`: number of batches that named it.
    """

    id: UUID
    name: str
    key: str
    plain: str
    kind: str
    qualifier: str | None = None
    root: UUID | None = None
    mentions: int = 0

    @property
    def root_id(self) -> UUID:
        """Id of the node under which its relations are shown."""
        return self.root or self.id


@dataclass(slots=True)
class GraphEdge:
    """An edge between two nodes, with their names: a stored one, or one that a batch adds.

    `said_at`: its last statement. `protected`: a person pinned or edited the memory that states it,
    or it is immutable. `memory_id`, `slot` and `text` are those of that memory, or of the fact;
    None and "" if it is not active. `valid_to`: its end; None for a current edge. `disputed`: the
    memory is or was in a conflict. `fact` and `new`: of an edge of the batch, its fact and its row.
    """

    id: UUID
    source_id: UUID
    source: str
    relation: str
    destination_id: UUID
    destination: str
    valid_from: datetime
    said_at: datetime
    protected: bool = False
    event_id: UUID | None = None
    memory_id: UUID | None = None
    slot: str | None = None
    valid_to: datetime | None = None
    text: str = ""
    disputed: bool = False
    fact: int | None = None
    new: NewEdge | None = None

    @property
    def names(self) -> tuple[str, str]:
        """The names of the source and the destination."""
        return self.source, self.destination


@dataclass(frozen=True, slots=True)
class Successor:
    """The later statement that supersedes a fact, with the time since when it holds."""

    text: str
    since: datetime
    event_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class FactMemory:
    """The memories of a fact after its decisions, so that the graph agrees with them.

    `texts`: the active memories that it stored. `beside`: memories that contradict it and stay,
    because nothing decides or the change is withheld. `retired`: memories that it retires.
    `successor`: of a fact that arrived late and is only history. `repeats`: it says again what its
    memory states, at an earlier time. `added`: its decision is an ADD, which compares it with no
    memory of its attribute.
    """

    memory_id: UUID | None = None
    texts: tuple[str, ...] = ()
    beside: tuple[UUID, ...] = ()
    retired: tuple[UUID, ...] = ()
    successor: Successor | None = None
    repeats: bool = False
    added: bool = False


@dataclass(frozen=True, slots=True)
class LaterStatement:
    """The text of an active memory that was said after a fact of a batch.

    `since`: when it begins to hold. `memory_id`, `event_id` and `speaker` are those of the memory.
    """

    text: str
    said_at: datetime
    since: datetime
    memory_id: UUID
    event_id: UUID
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """Two nodes that name the same thing: `node_id` is shown under `into`, a root, from now on."""

    node_id: UUID
    into: UUID
    reason: str


@dataclass(frozen=True, slots=True)
class NewEdge:
    """An edge to insert.

    `valid_to`: it has ended already, by the later fact `ended_by` of the same batch or by the event
    `followed_by`. `memory_id`: if another memory than that of the fact states it.
    """

    id: UUID
    source_id: UUID
    relation: str
    destination_id: UUID
    fact: int
    valid_from: datetime
    valid_to: datetime | None = None
    ended_by: int | None = None
    followed_by: UUID | None = None
    memory_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class EndedEdge:
    """An edge to close, or to close earlier, and the fact that ends it.

    `valid_to`: the time since when it does not hold; None for an edge that a better one replaces.
    `followed_by`: the stored event that ends it, in place of the fact's.
    """

    id: UUID
    valid_to: datetime | None
    fact: int
    followed_by: UUID | None = None


@dataclass(frozen=True, slots=True)
class EndedRelation:
    """A relation to close, because an event changes its memory and has no graph of its own.

    `valid_to`: None if another memory states it now: the relation `moved_id` of `memory_id` takes
    its place, as stated by this message of the event.
    """

    id: UUID
    event_id: UUID
    valid_to: datetime | None
    moved_id: UUID | None = None
    memory_id: UUID | None = None
    message_ordinal: int | None = None


@dataclass(frozen=True, slots=True)
class GraphLine:
    """A line of the receipt: the effect of a fact on an edge, and the reason."""

    fact: int
    outcome: GraphOutcome
    relation_id: UUID | None
    source: str
    relation: str
    destination: str
    reason: str


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """Changes of the stored graph: what one batch writes.

    `nodes`: all nodes that the batch names; those that do not exist are inserted.
    """

    nodes: Sequence[Node] = ()
    merges: Sequence[Merge] = ()
    edges: Sequence[NewEdge] = ()
    ended: Sequence[EndedEdge] = ()
    lines: Sequence[GraphLine] = ()


def name_key(name: str) -> str:
    """Key of an entity name: equal for names that differ only in case or white space."""
    return " ".join(name.casefold().split())


def node_id(scope: Scope, key: str) -> UUID:
    """Stable id of the node with this key in the scope."""
    return uuid5(scope.lane_id, f"entity:{key}")


def graph_types(stored: Mapping[str, Any] | None) -> GraphTypes:
    """The types that a project's stored settings name."""
    stored = stored or {}
    return GraphTypes(stored.get("entity_types") or {}, stored.get("relation_types") or {})
