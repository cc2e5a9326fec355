"""Working copy of a graph, to which the facts of a batch are applied one by one.

It holds the stored edges and those that the batch adds, and notes what changes: see
pipeline/domain/graph_plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID, uuid5

from pipeline.domain.entity_resolution import NodeSet
from pipeline.domain.facts import Fact
from pipeline.domain.graph import (
    CurrentEdge,
    EndedEdge,
    FactMemory,
    FactSource,
    GraphLine,
    GraphOutcome,
    GraphTypes,
    LaterStatement,
    NewEdge,
    Node,
    Relation,
)
from pipeline.domain.graph_names import (
    ALONE,
    PROPER,
    compared_name,
    is_of_its_slot,
    is_proper,
)
from pipeline.text import polarity
from pipeline.text.names import plain_name, says
from pipeline.text.relation_names import (
    canonical,
    ended_by,
    ends_both,
    has_several,
    is_symmetric,
    opposites,
)

SAID_AGAIN = "It was said again later."
ENDED_EARLIER = "A statement that arrived late says that it ended earlier."
ONE_THING = "The fact says that two names are of one thing, which has another value since then."
PROTECTED = "A person pinned or edited the memory that states it, or it is immutable."


class EdgeEnd(NamedTuple):
    """An end of an edge: by an event, or by a fact of the batch."""

    at: datetime
    event_id: UUID | None
    fact: int | None = None


@dataclass(slots=True)
class WorkingEdge:
    """An edge of the working copy. `fact`: the fact of this batch that states it; else None.

    `said_at`: the last statement of it. `valid_to`: its end; None for a current edge. `text`: the
    statement. `ended_by`: the event that ended it.
    """

    id: UUID
    source: UUID
    relation: str
    destination: UUID
    names: tuple[str, str]
    valid_from: datetime
    said_at: datetime
    fact: int | None = None
    new: NewEdge | None = None
    protected: bool = False
    event_id: UUID | None = None
    memory_id: UUID | None = None
    slot: str | None = None
    valid_to: datetime | None = None
    text: str = ""
    ended_by: UUID | None = None

    @classmethod
    def stored(cls, edge: CurrentEdge) -> WorkingEdge:
        """The working copy of a stored edge."""
        return cls(
            edge.id, edge.source_id, edge.relation, edge.destination_id,
            (edge.source, edge.destination), edge.valid_from, edge.said_at or edge.valid_from,
            protected=edge.protected, event_id=edge.event_id, memory_id=edge.memory_id,
            slot=edge.slot, valid_to=edge.valid_to, text=edge.text,
            ended_by=edge.ended_by,
        )  # fmt: skip

    @property
    def end(self) -> EdgeEnd | None:
        """The end; None for a current edge."""
        if self.valid_to is None:
            return None
        if self.new is None:
            return EdgeEnd(self.valid_to, self.ended_by)
        return EdgeEnd(self.valid_to, self.new.followed_by, self.new.ended_by)

    @property
    def adds(self) -> bool:
        """True if the statement adds the edge to what held ("also")."""
        return polarity.adds(self.text)


@dataclass(slots=True)
class WorkingGraph:
    """The working copy of the graph, and the changes so far.

    `past`: edges that have ended. `later`: statements that were said after a fact of the batch.
    """

    nodes: NodeSet
    facts: Sequence[Fact]
    sources: Sequence[FactSource]
    memories: Sequence[FactMemory]
    edges: dict[UUID, WorkingEdge] = field(default_factory=dict)
    past: dict[UUID, WorkingEdge] = field(default_factory=dict)
    later: Sequence[LaterStatement] = ()
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

    def same(self, source: UUID, relation: str, destination: UUID) -> WorkingEdge | None:
        """The current edge between the two nodes."""
        return next(self._between(self.edges, source, relation, destination), None)

    def ended_since(
        self, fact: int, source: UUID, relation: str, destination: UUID
    ) -> list[WorkingEdge]:
        """The edges between the two nodes that ended after the fact was said."""
        said_at = self.sources[fact].said_at
        ended = self._between(self.past, source, relation, destination)
        return [edge for edge in ended if edge.valid_to and edge.valid_to > said_at]

    def _between(
        self, edges: Mapping[UUID, WorkingEdge], source: UUID, relation: str, destination: UUID
    ) -> Iterator[WorkingEdge]:
        ends = [(source, destination)]
        if is_symmetric(relation):
            ends.append((destination, source))
        same = (edge for edge in edges.values() if edge.relation == relation)
        return (edge for edge in same if self._ends(edge) in ends)

    def excluded(
        self, fact: int, source: UUID, relation: str, destination: Node
    ) -> list[WorkingEdge]:
        """Edges, also ended ones, that cannot hold together with a new one of the fact."""
        superseded = self.memories[fact].successor is not None
        adds = polarity.adds(self.facts[fact].text)
        guessed = not says(self.facts[fact].text, destination.name)
        target = self.root(destination.id)
        both = {source, target} if ends_both(relation) else {source}

        def is_excluded(edge: WorkingEdge) -> bool:
            if guessed and not self.is_of_slot(fact, edge):
                return False
            first, second = self._ends(edge)
            if self.is_later(fact, edge):  # the edge ends the new one
                ended, ending = relation, edge.relation
                name, also = edge.names[1], edge.adds
            else:
                ended, ending = edge.relation, relation
                name, also = destination.name, adds
            if ended in opposites(ending) and {first, second} == {source, target}:
                return True
            mine = first in both or (ends_both(edge.relation) and second in both)
            return mine and ended in _doomed(ending, name, adds=also, superseded=superseded)

        others = (e for e in self.edges.values() if e.fact != fact and e.id not in self.restated)
        return [
            edge
            for edge in (*others, *self.past.values())
            if is_excluded(edge)
            and not self.stays_beside(fact, edge)
            and not (self.is_current(fact) and self.keeps_its_memory(fact, edge))
        ]

    def stays_beside(self, fact: int, edge: WorkingEdge) -> bool:
        """True if the edge's memory contradicts the fact, and both are kept."""
        return edge.memory_id in self.memories[fact].beside

    def is_current(self, fact: int) -> bool:
        """True if an active memory states the fact; False if it is only history."""
        memory = self.memories[fact]
        return bool(memory.texts) and memory.successor is None and not memory.repeats

    def keeps_its_memory(self, fact: int, edge: WorkingEdge) -> bool:
        """True if the edge is another value of the fact's single-valued attribute, and the fact
        leaves the active memory that states it as it is.
        """
        memory, own = self.memories[fact], self.facts[fact].slot
        if memory.added or edge.valid_to is not None:
            return False
        if edge.memory_id in (None, memory.memory_id, *memory.retired):
            return False
        return edge.slot is not None and edge.slot == own and self.is_of_slot(fact, edge)

    def is_of_slot(self, fact: int, edge: WorkingEdge) -> bool:
        """True if the fact gives a value of the edge's single-valued attribute and subject."""
        return is_of_its_slot(self.facts[fact], edge.names[0], edge.relation)

    def is_later(self, fact: int, edge: WorkingEdge) -> bool:
        """True if the edge began after the fact, and was said after it."""
        return edge.valid_from > self.start(fact) and edge.said_at > self.sources[fact].said_at

    def ends_of(self, source: UUID, relation: str) -> set[UUID]:
        """The destinations of a source's current edges of this name."""
        edges = (e for e in self.edges.values() if e.relation == relation)
        return {edge.destination for edge in edges if self.root(edge.source) == source}

    def restate(self, fact: int, stated: Sequence[Relation], types: GraphTypes) -> None:
        """Note the current edges that a fact states and names: it ends none of them."""
        text = self.facts[fact].text
        keys: set[tuple[str, frozenset[str]]] = set()
        for row in stated:
            name = canonical(row.relation, types.relations).name
            keys.add(
                (
                    name,
                    frozenset(
                        {compared_name(row.source.name), compared_name(row.destination.name)}
                    ),
                )
            )
        self.restated = {
            edge.id
            for edge in self.edges.values()
            if (edge.relation, frozenset(map(compared_name, edge.names))) in keys
            and says(text, edge.names[1])
        }

    def root(self, node_id: UUID) -> UUID:
        """The node under which a node is shown."""
        return self.nodes.root(node_id)

    def _ends(self, edge: WorkingEdge) -> tuple[UUID, UUID]:
        return self.root(edge.source), self.root(edge.destination)

    def close(self, edge: WorkingEdge, fact: int, reason: str) -> None:
        """End a current edge at the time of the fact, unless a person protects it."""
        if edge.protected:
            return self.note(fact, GraphOutcome.NOOP, edge, PROTECTED)
        del self.edges[edge.id]
        self.closed.add((fact, self._ends(edge)[0], edge.relation, self._ends(edge)[1]))
        self._end_at(edge, max(self.start(fact), edge.valid_from), fact)
        return self.note(fact, GraphOutcome.INVALIDATE, edge, reason)

    def end_earlier(self, edge: WorkingEdge, fact: int) -> None:
        """Move the end of an edge that has ended to the time of the fact."""
        self._end_at(edge, self.start(fact), fact)
        self.note(fact, GraphOutcome.UPDATE, edge, ENDED_EARLIER)

    def _end_at(self, edge: WorkingEdge, until: datetime, fact: int) -> None:
        edge.valid_to = until
        self.past[edge.id] = edge
        if edge.new is not None:
            edge.new = replace(edge.new, valid_to=until, ended_by=fact, followed_by=None)
            self.added[edge.id] = edge.new
        else:
            self.ended = [ended for ended in self.ended if ended.id != edge.id]
            self.ended.append(EndedEdge(edge.id, until, fact))

    def join(self, fact: int, root: UUID) -> None:
        """End the edges of a node that another one excludes since two nodes are one."""
        own = [edge for edge in self.edges.values() if self.root(edge.source) == root]
        for first in own:
            following = [
                other.valid_from
                for other in own
                if other.valid_from > first.valid_from
                and first.relation in _doomed(other.relation, other.names[1], adds=other.adds)
            ]
            if following and not first.protected:
                del self.edges[first.id]
                self._end_at(first, min(following), fact)
                self.note(fact, GraphOutcome.INVALIDATE, first, ONE_THING)

    def interrupt(self, edge: WorkingEdge, fact: int, reason: str) -> WorkingEdge:
        """Close an edge at the time of the fact, and open it again when it was said again."""
        self.close(edge, fact, reason)
        return self.open_again(edge, fact, since=edge.said_at, memory_id=edge.memory_id)

    def open_again(
        self,
        edge: WorkingEdge,
        fact: int,
        *,
        since: datetime,
        memory_id: UUID | None,
        end: EdgeEnd | None = None,
    ) -> WorkingEdge:
        """Add an edge again that the fact has ended. `end`: where it ended before."""
        key = f"again:{self.sources[fact].seq}:{edge.id}"
        again = NewEdge(
            uuid5(self.sources[fact].event_id, key), edge.source, edge.relation, edge.destination,
            fact, since, end.at if end else None, end.fact if end else None,
            end.event_id if end else None, memory_id,
        )  # fmt: skip
        return self.add(again, edge.names, SAID_AGAIN, GraphOutcome.ADD)

    def add(
        self, edge: NewEdge, names: tuple[str, str], reason: str, outcome: GraphOutcome
    ) -> WorkingEdge:
        """Insert an edge; it is current unless it has ended already."""
        self.added[edge.id] = edge
        fact, source = self.facts[edge.fact], self.sources[edge.fact]
        working = WorkingEdge(
            edge.id, edge.source_id, edge.relation, edge.destination_id, names, edge.valid_from,
            max(source.said_at, edge.valid_from) if edge.memory_id else source.said_at, edge.fact,
            edge, event_id=source.event_id,
            memory_id=edge.memory_id or self.memories[edge.fact].memory_id, slot=fact.slot,
            valid_to=edge.valid_to, text=fact.text,
        )  # fmt: skip
        (self.edges if edge.valid_to is None else self.past)[edge.id] = working
        self.note(edge.fact, outcome, working, reason)
        return working

    def note(self, fact: int, outcome: GraphOutcome, edge: WorkingEdge, reason: str) -> None:
        """Write a line of the receipt."""
        self.lines.append(
            GraphLine(fact, outcome, edge.id, edge.names[0], edge.relation, edge.names[1], reason)
        )


def _doomed(
    relation: str, destination: str, *, adds: bool, superseded: bool = False
) -> frozenset[str]:
    """Names of relations of the same source that an edge ends.

    `superseded`: one of the two statements supersedes the other.
    """
    if adds or (relation in PROPER and not is_proper(destination)):
        return frozenset()
    if relation == "has_status" and plain_name(destination) not in ALONE:
        return frozenset({"has_status"})
    same = frozenset({relation}) if superseded and not has_several(relation) else frozenset()
    return ended_by(relation) | same
