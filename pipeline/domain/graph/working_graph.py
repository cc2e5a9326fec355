"""Working copy of a graph, to which the facts of a batch are applied one by one.

It holds the stored edges and those that the batch adds, and notes what changes: see
pipeline/domain/graph/plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID, uuid5

from pipeline.domain.facts import Fact
from pipeline.domain.graph.entity_resolution import NodeSet
from pipeline.domain.graph.late_ends import LateEnds
from pipeline.domain.graph.names import (
    ALONE,
    PROPER,
    compared_name,
    is_of_its_slot,
    is_proper,
    stands_beside,
)
from pipeline.domain.graph.values import (
    EndedEdge,
    FactMemory,
    GraphEdge,
    GraphLine,
    GraphOutcome,
    GraphTypes,
    NewEdge,
    Node,
    Relation,
)
from pipeline.text.names import plain_name, says
from pipeline.text.relations.names import (
    canonical,
    ended_by,
    ends_both,
    has_several,
    is_symmetric,
    opposites,
)
from pipeline.text.statements import polarity

SAID_AGAIN = "It was said again later."
ENDED_EARLIER = "A statement that arrived late says that it ended earlier."
PROTECTED = "A person pinned or edited the memory that states it, or it is immutable."


@dataclass(frozen=True, slots=True)
class FactSource:
    """Origin of a fact: its event with its place in the lane, and the time of the statement."""

    event_id: UUID
    seq: int
    said_at: datetime


@dataclass(slots=True)
class WorkingGraph:
    """The working copy of the graph, and the changes so far.

    `past`: edges that have ended. `late`: ends that were said after a fact and arrived before it.
    """

    nodes: NodeSet
    facts: Sequence[Fact]
    sources: Sequence[FactSource]
    memories: Sequence[FactMemory]
    edges: dict[UUID, GraphEdge] = field(default_factory=dict)
    past: dict[UUID, GraphEdge] = field(default_factory=dict)
    late: LateEnds = field(default_factory=LateEnds)
    added: dict[UUID, NewEdge] = field(default_factory=dict)
    ended: list[EndedEdge] = field(default_factory=list)
    lines: list[GraphLine] = field(default_factory=list)
    # Current edges that the fact states.
    restated: set[UUID] = field(default_factory=set)
    # The fact, source, name and destination of each edge that is closed.
    closed: set[tuple[int, UUID, str, UUID]] = field(default_factory=set)

    def start(self, fact: int) -> datetime:
        """The time since when the fact holds."""
        return self.facts[fact].valid_from or self.sources[fact].said_at

    def same(self, source: UUID, relation: str, destination: UUID) -> GraphEdge | None:
        """The current edge between the two nodes."""
        return next(self._between(self.edges, source, relation, destination), None)

    def known_until(self, edge: NewEdge, until: datetime) -> GraphEdge | None:
        """The ended edge of the same that held from the edge's beginning until a time."""
        ends = self.root(edge.source_id), self.root(edge.destination_id)
        for other in self._between(self.past, ends[0], edge.relation, ends[1]):
            ended = other.valid_to is not None and other.valid_to >= until
            if ended and other.valid_from <= edge.valid_from:
                return other
        return None

    def owners(self, thing: UUID) -> Mapping[str, Sequence[GraphEdge]]:
        """The edges of the owners of a thing, current and former, by their names."""
        owners: dict[str, list[GraphEdge]] = {}
        for edge in (*self.edges.values(), *self.past.values()):
            if edge.relation == "owns" and self.root(edge.destination_id) == self.root(thing):
                owners.setdefault(compared_name(edge.source), []).append(edge)
        return owners

    def touching(self, root: UUID) -> dict[UUID, GraphEdge]:
        """The edges of a thing, current and ended."""
        return {
            edge.id: edge
            for edge in (*self.edges.values(), *self.past.values())
            if root in self._ends(edge)
        }

    def _between(
        self, edges: Mapping[UUID, GraphEdge], source: UUID, relation: str, destination: UUID
    ) -> Iterator[GraphEdge]:
        """The edges of this name between the two nodes."""
        ends = [(source, destination)]
        if is_symmetric(relation):
            ends.append((destination, source))
        return (e for e in edges.values() if e.relation == relation and self._ends(e) in ends)

    def excluded(
        self, fact: int, source: UUID, relation: str, destination: Node
    ) -> list[GraphEdge]:
        """Edges, also ended ones, that cannot hold together with a new one of the fact.

        Of two edges, the later one decides if it ends the other.
        """
        superseded = self.memories[fact].successor is not None
        text = self.facts[fact].text
        adds, guessed = polarity.adds(text), not says(text, destination.name)
        target = self.root(destination.id)
        both = {source, target} if ends_both(relation) else {source}

        def is_excluded(edge: GraphEdge) -> bool:
            if guessed and not same_slot(self.facts[fact], edge):
                return False
            later = edge.text != "" and self.is_later(fact, edge)
            ended, ending = (relation, edge.relation) if later else (edge.relation, relation)
            first, second = self._ends(edge)
            if ended in opposites(ending) and {first, second} == {source, target}:
                return True
            mine = first in both or (ends_both(edge.relation) and second in both)
            name = edge.destination if later else destination.name
            if not mine or not ends_relation(ending, name, ended, superseded=superseded):
                return False
            return not (adds or (later and stands_beside(edge.text, edge.destination)))

        others = (e for e in self.edges.values() if e.fact != fact and e.id not in self.restated)
        return [
            edge
            for edge in (*others, *self.past.values())
            if is_excluded(edge)
            and not self.stays_beside(fact, edge)
            and not (self.is_current(fact) and self.keeps_its_memory(fact, edge))
        ]

    def stays_beside(self, fact: int, edge: GraphEdge) -> bool:
        """True if the edge's memory contradicts the fact, and both are kept."""
        return edge.memory_id in self.memories[fact].beside

    def is_current(self, fact: int) -> bool:
        """True if an active memory states the fact; False if it is only history."""
        memory = self.memories[fact]
        return bool(memory.texts) and memory.successor is None and not memory.repeats

    def keeps_its_memory(self, fact: int, edge: GraphEdge) -> bool:
        """True if the edge is another value of the fact's single-valued attribute, and the fact
        leaves the active memory that states it as it is.
        """
        memory, own = self.memories[fact], self.facts[fact].slot
        if memory.added or edge.valid_to is not None:
            return False
        if edge.memory_id in (None, memory.memory_id, *memory.retired):
            return False
        return edge.slot is not None and edge.slot == own and same_slot(self.facts[fact], edge)

    def is_later(self, fact: int, edge: GraphEdge) -> bool:
        """True if the edge began after the fact, and was said after it."""
        return edge.valid_from > self.start(fact) and edge.said_at > self.sources[fact].said_at

    def ends_of(self, source: UUID, relation: str) -> set[UUID]:
        """The destinations of a source's current edges of this name."""
        edges = (e for e in self.edges.values() if e.relation == relation)
        return {edge.destination_id for edge in edges if self.root(edge.source_id) == source}

    def restate(self, fact: int, stated: Sequence[Relation], types: GraphTypes) -> None:
        """Note the current edges that a fact states and names: it ends none of them."""
        text = self.facts[fact].text
        keys = {
            (
                canonical(row.relation, types.relations).name,
                frozenset(map(compared_name, (row.source.name, row.destination.name))),
            )
            for row in stated
        }
        self.restated = {
            edge.id
            for edge in self.edges.values()
            if (edge.relation, frozenset(map(compared_name, edge.names))) in keys
            and says(text, edge.destination)
        }

    def root(self, node_id: UUID) -> UUID:
        """The node under which a node is shown."""
        return self.nodes.root(node_id)

    def _ends(self, edge: GraphEdge) -> tuple[UUID, UUID]:
        return self.root(edge.source_id), self.root(edge.destination_id)

    def close(self, edge: GraphEdge, fact: int, reason: str) -> None:
        """End a current edge at the time of the fact, unless a person protects it."""
        if edge.protected:
            return self.note(fact, GraphOutcome.NOOP, edge, PROTECTED)
        del self.edges[edge.id]
        self.closed.add((fact, self._ends(edge)[0], edge.relation, self._ends(edge)[1]))
        self._end_at(edge, max(self.start(fact), edge.valid_from), fact)
        return self.note(fact, GraphOutcome.INVALIDATE, edge, reason)

    def end_with(self, edge: GraphEdge, fact: int, later: GraphEdge, reason: str) -> None:
        """End a current edge when a stored one began, by its event, unless a person protects it."""
        if edge.protected:
            return self.note(fact, GraphOutcome.NOOP, edge, PROTECTED)
        del self.edges[edge.id]
        self._end_at(edge, later.valid_from, fact, later.event_id)
        return self.note(fact, GraphOutcome.INVALIDATE, edge, reason)

    def end_earlier(self, edge: GraphEdge, fact: int) -> None:
        """Move the end of an edge that has ended to the time of the fact."""
        self._end_at(edge, self.start(fact), fact)
        self.note(fact, GraphOutcome.UPDATE, edge, ENDED_EARLIER)

    def _end_at(
        self, edge: GraphEdge, until: datetime, fact: int, followed_by: UUID | None = None
    ) -> None:
        """Set the end of an edge, by a fact, or by a stored event."""
        edge.valid_to = until
        self.past[edge.id] = edge
        if edge.new is not None:
            by = None if followed_by else fact
            edge.new = replace(edge.new, valid_to=until, ended_by=by, followed_by=followed_by)
            self.added[edge.id] = edge.new
        else:
            self.ended = [ended for ended in self.ended if ended.id != edge.id]
            self.ended.append(EndedEdge(edge.id, until, fact, followed_by))

    def interrupt(self, edge: GraphEdge, fact: int, reason: str) -> GraphEdge:
        """Close an edge at the time of the fact, and open it again when it was said again."""
        self.close(edge, fact, reason)
        key = f"again:{self.sources[fact].seq}:{edge.id}"
        again = NewEdge(
            uuid5(self.sources[fact].event_id, key), edge.source_id, edge.relation,
            edge.destination_id, fact, edge.said_at, memory_id=edge.memory_id,
        )  # fmt: skip
        return self.add(again, edge.names, SAID_AGAIN, GraphOutcome.ADD)

    def move(self, edge: GraphEdge, fact: int, reason: str) -> None:
        """Put an edge of the fact's memory in the place of the same current edge of another one."""
        del self.edges[edge.id]
        if edge.new is not None:
            del self.added[edge.id]
        else:
            self.ended.append(EndedEdge(edge.id, None, fact))
        key = f"moved:{self.sources[fact].seq}:{edge.id}"
        moved = NewEdge(
            uuid5(self.sources[fact].event_id, key), edge.source_id, edge.relation,
            edge.destination_id, fact, edge.valid_from,
        )  # fmt: skip
        self.add(moved, edge.names, reason, GraphOutcome.UPDATE)

    def add(
        self, edge: NewEdge, names: tuple[str, str], reason: str, outcome: GraphOutcome
    ) -> GraphEdge:
        """Insert an edge; it is current unless it has ended already."""
        self.added[edge.id] = edge
        fact, source = self.facts[edge.fact], self.sources[edge.fact]
        working = GraphEdge(
            edge.id, edge.source_id, names[0], edge.relation, edge.destination_id, names[1],
            edge.valid_from,
            max(source.said_at, edge.valid_from) if edge.memory_id else source.said_at,
            event_id=source.event_id,
            memory_id=edge.memory_id or self.memories[edge.fact].memory_id, slot=fact.slot,
            valid_to=edge.valid_to, text=fact.text, fact=edge.fact, new=edge,
        )  # fmt: skip
        (self.edges if edge.valid_to is None else self.past)[edge.id] = working
        self.note(edge.fact, outcome, working, reason)
        return working

    def note(self, fact: int, outcome: GraphOutcome, edge: GraphEdge, reason: str) -> None:
        """Write a line of the receipt."""
        self.lines.append(
            GraphLine(fact, outcome, edge.id, edge.source, edge.relation, edge.destination, reason)
        )


def holds_at(edge: GraphEdge, time: datetime) -> bool:
    """True if an edge holds at a time."""
    return edge.valid_from <= time and (edge.valid_to is None or edge.valid_to > time)


def same_slot(fact: Fact, edge: GraphEdge) -> bool:
    """True if the fact gives a value of the edge's single-valued attribute of the same subject."""
    return is_of_its_slot(fact, edge.source, edge.relation)


def ends_relation(ending: str, destination: str, ended: str, *, superseded: bool) -> bool:
    """True if an edge ends those of the relation `ended` of the same source.

    `superseded`: the statement of one of the two supersedes the other.
    """
    if ending in PROPER and not is_proper(destination):
        return False
    if ending == "has_status" and plain_name(destination) not in ALONE:
        return ended == "has_status"
    same = superseded and ended == ending and not has_several(ending)
    return same or ended in ended_by(ending)
