"""Pure function from a model's answer to changes of the graph.

The facts are applied in order to a copy of the current edges. For each edge that a fact states:

    it is current                     NOOP; UPDATE if the fact says that it began earlier
    it excludes current edges         INVALIDATE of these, then ADD: a source has one residence,
                                      employer or spouse at a time, and likes or dislikes a thing
    an excluded edge began later      ADD of an edge that has ended already
    the fact adds ("also") or plans   ADD; nothing ends
    otherwise                         ADD

An edge that the model ends is closed only if the fact takes it back, puts another destination in
its place, or is about the same single-valued attribute; else the line is NOOP. A fact that takes a
value back closes its edge even if the model has not listed it. A fact ends no edge that it states,
and none by a value that it does not name. Times are those of the facts. Edges are closed and never
deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID, uuid5

from pipeline.domain.facts import Fact, FactKind
from pipeline.domain.graph import (
    CurrentEdge,
    EndedEdge,
    GraphChanges,
    GraphLine,
    GraphOutcome,
    GraphPlan,
    GraphTypes,
    NewEdge,
    Node,
    Relation,
)
from pipeline.domain.graph_nodes import NodeSet
from pipeline.text import polarity
from pipeline.text.names import is_self, named_in, plain_name, says
from pipeline.text.relation_names import (
    NAMING,
    attribute_of,
    canonical,
    ended_by,
    ends_both,
    has_several,
    is_symmetric,
    opposites,
    role_in,
    role_of,
    words_about,
)
from pipeline.text.slots import attribute_name, single_valued, slot
from pipeline.text.terms import terms
from pipeline.text.word_lists import words_of

STATED = "The fact states it."
KNOWN = "It is known already."
EARLIER = "The fact says that it began earlier."
REPLACED = "The fact gives another value, and there is one at a time."
EXCLUDED = "The fact cannot hold together with it."
TAKEN_BACK = "The fact takes it back."
FORMER = "It held before the current one."
KEPT = "The fact does not take it back."
PROTECTED = "A person pinned or edited the memory that states it, or it is immutable."

# Relations whose destination has a proper name: "a small flat" is no residence that ends another.
_PROPER = frozenset({"lives_in", "works_at", "is_from", "born_in"})
# Statuses that are no partnership.
_ALONE = words_of(
    """
    single divorced widowed separated geschieden ledig verwitwet getrennt soltero soltera
    divorciado divorciada separado separada viudo viuda 单身 离婚 离异 丧偶
    """
)


@dataclass(frozen=True, slots=True)
class FactSource:
    """Origin of a fact: its event with its place in the lane, and the time of the statement."""

    event_id: UUID
    seq: int
    said_at: datetime


@dataclass(slots=True)
class _Edge:
    """An edge of the working copy. `fact`: the fact of this batch that states it; else None."""

    id: UUID
    source: UUID
    relation: str
    destination: UUID
    names: tuple[str, str]
    valid_from: datetime
    fact: int | None = None
    new: NewEdge | None = None
    protected: bool = False


@dataclass(slots=True)
class _Plan:
    """The working copy of the graph, and the changes so far."""

    nodes: NodeSet
    facts: Sequence[Fact]
    sources: Sequence[FactSource]
    edges: dict[UUID, _Edge] = field(default_factory=dict)
    added: dict[UUID, NewEdge] = field(default_factory=dict)
    ended: list[EndedEdge] = field(default_factory=list)
    lines: list[GraphLine] = field(default_factory=list)
    # Current edges that the fact at hand states.
    restated: set[UUID] = field(default_factory=set)
    # The fact, source, name and destination of each edge that is closed.
    closed: set[tuple[int, UUID, str, UUID]] = field(default_factory=set)

    def start(self, fact: int) -> datetime:
        """The time since when the fact holds."""
        return self.facts[fact].valid_from or self.sources[fact].said_at

    def same(self, source: UUID, relation: str, destination: UUID) -> _Edge | None:
        """The current edge between the two nodes."""
        ends = [(source, destination)]
        if is_symmetric(relation):
            ends.append((destination, source))
        matches = (e for e in self.edges.values() if e.relation == relation)
        return next((e for e in matches if self._ends(e) in ends), None)

    def excluded(self, fact: int, source: UUID, relation: str, destination: Node) -> list[_Edge]:
        """Current edges that cannot hold together with a new one of the fact."""
        doomed = ended_by(relation)
        if relation in _PROPER and not _is_proper(destination.name):
            doomed = frozenset()
        if relation == "has_status" and destination.plain not in _ALONE:
            doomed = frozenset({"has_status"})
        if polarity.adds(self.facts[fact].text):
            doomed = frozenset()
        guessed = not says(self.facts[fact].text, destination.name)
        target = self.root(destination.id)
        both = {source, target} if ends_both(relation) else {source}

        def is_excluded(edge: _Edge) -> bool:
            if guessed and not _same_slot(self.facts[fact], edge):
                return False
            first, second = self._ends(edge)
            if edge.relation in opposites(relation) and {first, second} == {source, target}:
                return True
            mine = first in both or (ends_both(edge.relation) and second in both)
            return edge.relation in doomed and mine

        others = (e for e in self.edges.values() if e.fact != fact and e.id not in self.restated)
        return [edge for edge in others if is_excluded(edge)]

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
            keys.add((name, frozenset({_plain(row.source.name), _plain(row.destination.name)})))
        self.restated = {
            edge.id
            for edge in self.edges.values()
            if (edge.relation, frozenset(map(_plain, edge.names))) in keys
            and says(text, edge.names[1])
        }

    def root(self, node_id: UUID) -> UUID:
        """The node under which a node is shown."""
        return self.nodes.root(node_id)

    def _ends(self, edge: _Edge) -> tuple[UUID, UUID]:
        return self.root(edge.source), self.root(edge.destination)

    def close(self, edge: _Edge, fact: int, reason: str) -> None:
        """End a current edge at the time of the fact, unless a person protects it."""
        if edge.protected:
            return self.note(fact, GraphOutcome.NOOP, edge, PROTECTED)
        del self.edges[edge.id]
        self.closed.add((fact, self._ends(edge)[0], edge.relation, self._ends(edge)[1]))
        until = max(self.start(fact), edge.valid_from)
        if edge.new is not None:
            self.added[edge.id] = replace(edge.new, valid_to=until, ended_by=fact)
        else:
            self.ended.append(EndedEdge(edge.id, until, fact))
        return self.note(fact, GraphOutcome.INVALIDATE, edge, reason)

    def add(
        self, edge: NewEdge, names: tuple[str, str], reason: str, outcome: GraphOutcome
    ) -> None:
        """Insert an edge; it is current unless it has ended already."""
        self.added[edge.id] = edge
        working = _Edge(
            edge.id, edge.source_id, edge.relation, edge.destination_id, names, edge.valid_from,
            edge.fact, edge,
        )  # fmt: skip
        if edge.valid_to is None:
            self.edges[edge.id] = working
        self.note(edge.fact, outcome, working, reason)

    def note(self, fact: int, outcome: GraphOutcome, edge: _Edge, reason: str) -> None:
        """Write a line of the receipt."""
        self.lines.append(
            GraphLine(fact, outcome, edge.id, edge.names[0], edge.relation, edge.names[1], reason)
        )


def plan_changes(
    answer: GraphChanges,
    facts: Sequence[Fact],
    sources: Sequence[FactSource],
    *,
    nodes: NodeSet,
    current: Iterable[CurrentEdge],
    types: GraphTypes,
) -> GraphPlan:
    """The changes that a model's answer makes to the graph."""
    edges = {
        edge.id: _Edge(
            edge.id, edge.source_id, edge.relation, edge.destination_id,
            (edge.source, edge.destination), edge.valid_from, protected=edge.protected,
        )
        for edge in current
    }  # fmt: skip
    plan = _Plan(nodes, facts, sources, edges)
    for fact in range(len(facts)):
        stated = [row for row in answer.relations if row.fact == fact and not _is_loop(row)]
        plan.restate(fact, stated, types)
        roles = _roles(stated, facts[fact], types)
        for relation in stated:
            _state(plan, relation, roles, types)
        ended = [ending.relation_id for ending in answer.endings if ending.fact == fact]
        # An answer of an earlier release does not say which fact ends an edge.
        if fact == len(facts) - 1:
            ended += answer.ended
        _end(plan, fact, ended, stated)
    return GraphPlan(
        nodes.mentioned, nodes.merges, tuple(plan.added.values()), plan.ended, plan.lines
    )


def _roles(stated: Sequence[Relation], fact: Fact, types: GraphTypes) -> dict[str, str]:
    """The roles that a fact gives persons, by plain name."""
    roles: dict[str, str] = {}
    for relation in stated:
        for end in (relation.source, relation.destination):
            if not is_self(end.name) and (role := role_of(fact.text, end.name)):
                roles.setdefault(plain_name(end.name), role)
        name, exchanged = canonical(relation.relation, types.relations)
        person = relation.source if exchanged else relation.destination
        if (role := role_in(name)) and not is_self(person.name):
            roles.setdefault(plain_name(person.name), role)
    return roles


def _state(plan: _Plan, relation: Relation, roles: dict[str, str], types: GraphTypes) -> None:
    """Apply an edge that a fact states."""
    fact = relation.fact
    name, exchanged = canonical(relation.relation, types.relations)
    ends = (relation.destination, relation.source) if exchanged else (
        relation.source, relation.destination,
    )  # fmt: skip
    speaker = plan.facts[fact].speaker
    source = plan.nodes.find(ends[0], speaker=speaker, role=roles.get(plain_name(ends[0].name)))
    if name in NAMING and not is_self(ends[1].name):
        if not says(plan.facts[fact].text, ends[1].name):
            return
        destination = plan.nodes.alias(ends[1], source)
    else:
        destination = plan.nodes.find(
            ends[1],
            speaker=speaker,
            role=roles.get(plain_name(ends[1].name)),
            likely=plan.ends_of(plan.root(source.id), name),
        )
    planned = plan.facts[fact].kind is FactKind.PLAN
    if planned and ended_by(name):
        name = f"plans_{name}"
    if name not in NAMING and plan.root(source.id) == plan.root(destination.id):
        return
    _place(plan, fact, source, name, destination)


def _place(plan: _Plan, fact: int, source: Node, relation: str, destination: Node) -> None:
    """Add an edge between two nodes, or find that it is there; end those that it excludes."""
    if (fact, plan.root(source.id), relation, plan.root(destination.id)) in plan.closed:
        return
    names = (source.name, destination.name)
    from_, start = plan.root(source.id), plan.start(fact)
    known = plan.same(from_, relation, plan.root(destination.id))
    if relation in NAMING:  # both nodes have one root; the destination is a name
        known = next(
            (e for e in plan.edges.values()
             if e.relation == relation and e.destination == destination.id), None,
        )  # fmt: skip
    edge = NewEdge(
        _edge_id(plan, fact, source, relation, destination),
        source.id, relation, destination.id, fact, start,
    )  # fmt: skip
    if known is not None:
        since = plan.facts[fact].valid_from
        earlier = since is not None and since < known.valid_from
        if earlier and known.new is None and not known.protected:
            del plan.edges[known.id]
            plan.ended.append(EndedEdge(known.id, None, fact))
            plan.add(edge, names, EARLIER, GraphOutcome.UPDATE)
        else:
            plan.note(fact, GraphOutcome.NOOP, known, KNOWN)
        return
    excluded = plan.excluded(fact, from_, relation, destination)
    later = [other.valid_from for other in excluded if other.valid_from > start]
    if later:
        former = replace(edge, valid_to=min(later), ended_by=fact)
        plan.add(former, names, FORMER, GraphOutcome.ADD)
        return
    for other in excluded:
        single = other.relation == relation
        plan.close(other, fact, REPLACED if single else EXCLUDED)
    plan.add(edge, names, STATED, GraphOutcome.ADD)


def _edge_id(plan: _Plan, fact: int, source: Node, relation: str, destination: Node) -> UUID:
    """Id of a new edge: the same on every retry."""
    event = plan.sources[fact]
    key = f"relation:{event.seq}:{source.id}:{relation}:{destination.id}"
    edge_id = uuid5(event.event_id, key)
    return edge_id if edge_id not in plan.added else uuid5(event.event_id, f"{key}:{fact}")


def _end(plan: _Plan, fact: int, listed: Sequence[UUID], stated: Sequence[Relation]) -> None:
    """Close the current edges that the fact takes back, and of `listed` those it replaces."""
    edges = list(plan.edges.values())
    text = plan.facts[fact].text
    named = named_in(text, {_plain(name) for edge in edges for name in edge.names})
    for edge in [plan.edges[key] for key in dict.fromkeys(listed) if key in plan.edges]:
        if edge.fact == fact or edge.id in plan.restated:
            continue
        if reason := _reason_to_end(plan, fact, edge, named, edges):
            plan.close(edge, fact, reason)
        elif edge.id not in {line.relation_id for line in plan.lines if line.fact == fact}:
            plan.note(fact, GraphOutcome.NOOP, edge, KEPT)
    if not stated and polarity.takes_back(text):
        for edge in list(plan.edges.values()):
            if _is_its_value(plan.facts[fact], edge, named):
                plan.close(edge, fact, TAKEN_BACK)


def _reason_to_end(
    plan: _Plan, fact: int, edge: _Edge, named: Collection[str], edges: Iterable[_Edge]
) -> str | None:
    """The reason for which a fact ends an edge that the model ends; None if the edge stays."""
    if _is_replaced(plan, fact, edge, named):
        return REPLACED
    text = plan.facts[fact].text
    taken_back = polarity.takes_back(text) and _is_taken_back(plan, text, edge, named, edges)
    return TAKEN_BACK if taken_back or _gives_its_value(plan, fact, edge) else None


def _is_replaced(plan: _Plan, fact: int, edge: _Edge, named: Collection[str]) -> bool:
    """True if the fact puts a new current edge of the same source and name in its place."""
    if polarity.adds(plan.facts[fact].text):
        return False
    if has_several(edge.relation) and _plain(edge.names[1]) not in named:
        return False
    own = [new for new in plan.added.values() if new.fact == fact and new.valid_to is None]
    return any(
        (plan.root(new.source_id), new.relation) == (plan.root(edge.source), edge.relation)
        for new in own
    )


def _is_taken_back(
    plan: _Plan, text: str, edge: _Edge, named: Collection[str], edges: Iterable[_Edge]
) -> bool:
    """True if a fact that takes something back is about this edge.

    It names the destination; of several edges between the same two, in words about this one. If it
    names no destination of the source, its words are about the edge.
    """
    words = set(terms(text))
    about = not words_about(edge.relation).isdisjoint(words)
    same = [other for other in edges if plan.root(other.source) == plan.root(edge.source)]
    if _plain(edge.names[1]) in named:
        pair = [
            other for other in same if plan.root(other.destination) == plan.root(edge.destination)
        ]
        return about or all(words_about(other.relation).isdisjoint(words) for other in pair)
    is_named = _plain(edge.names[0]) in named
    return is_named and about and not any(_plain(other.names[1]) in named for other in same)


def _gives_its_value(plan: _Plan, fact: int, edge: _Edge) -> bool:
    """True if the fact gives a later value of the edge's single-valued attribute."""
    given = plan.facts[fact]
    if given.kind is FactKind.PLAN or polarity.adds(given.text):
        return False
    return plan.start(fact) >= edge.valid_from and _same_slot(given, edge)


def _same_slot(fact: Fact, edge: _Edge) -> bool:
    """True if the fact gives a value of the edge's single-valued attribute of the same subject."""
    attribute = attribute_of(edge.relation)
    ours = slot(_subject(edge.names[0]), attribute)
    return ours is not None and ours == slot(fact.subject, fact.attribute) and single_valued(ours)


def _is_its_value(fact: Fact, edge: _Edge, named: Collection[str]) -> bool:
    """True if the edge is the value of the fact's attribute that the fact names."""
    if not fact.attribute or attribute_of(edge.relation) != attribute_name(fact.attribute):
        return False
    same = plain_name(_subject(edge.names[0])) == plain_name(_subject(fact.subject or ""))
    return same and _plain(edge.names[1]) in named


def _subject(name: str) -> str:
    return "user" if is_self(name) else name


def _plain(name: str) -> str:
    """A name as it is compared; one word for all names of the speaker."""
    return plain_name("user" if is_self(name) else name)


def _is_loop(row: Relation) -> bool:
    """True for a relation of a thing with itself."""
    return _plain(row.source.name) == _plain(row.destination.name)


def _is_proper(name: str) -> bool:
    """True for a name with a capital letter or a digit, or in a script without capitals."""
    return any(not letter.islower() for letter in name if letter.isalnum())
