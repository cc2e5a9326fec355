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
value back closes its edge even if the model has not listed it. Times are those of the facts. Edges
are closed and never deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from pipeline.text.names import is_self, names_in, plain_name
from pipeline.text.relation_names import (
    NAMING,
    attribute_of,
    canonical,
    ended_by,
    ends_both,
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
        target = self.root(destination.id)
        both = {source, target} if ends_both(relation) else {source}

        def is_excluded(edge: _Edge) -> bool:
            first, second = self._ends(edge)
            if edge.relation in opposites(relation) and {first, second} == {source, target}:
                return True
            mine = first in both or (ends_both(edge.relation) and second in both)
            return edge.relation in doomed and mine

        return [e for e in self.edges.values() if e.fact != fact and is_excluded(e)]

    def root(self, node_id: UUID) -> UUID:
        """The node under which a node is shown."""
        return self.nodes.root(node_id)

    def _ends(self, edge: _Edge) -> tuple[UUID, UUID]:
        return self.root(edge.source), self.root(edge.destination)

    def close(self, edge: _Edge, fact: int, reason: str) -> None:
        """End a current edge at the time of the fact."""
        del self.edges[edge.id]
        until = max(self.start(fact), edge.valid_from)
        if edge.new is not None:
            self.added[edge.id] = replace(edge.new, valid_to=until, ended_by=fact)
        else:
            self.ended.append(EndedEdge(edge.id, until, fact))
        self.note(fact, GraphOutcome.INVALIDATE, edge, reason)

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
            (edge.source, edge.destination), edge.valid_from,
        )
        for edge in current
    }  # fmt: skip
    plan = _Plan(nodes, facts, sources, edges)
    for fact in range(len(facts)):
        stated = [relation for relation in answer.relations if relation.fact == fact]
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
        if role := role_in(name):
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
        destination = plan.nodes.alias(ends[1], source)
    else:
        role = roles.get(plain_name(ends[1].name))
        destination = plan.nodes.find(ends[1], speaker=speaker, role=role)
    planned = plan.facts[fact].kind is FactKind.PLAN
    if planned and ended_by(name):
        name = f"plans_{name}"
    if name not in NAMING and plan.root(source.id) == plan.root(destination.id):
        return
    _place(plan, fact, source, name, destination)


def _place(plan: _Plan, fact: int, source: Node, relation: str, destination: Node) -> None:
    """Add an edge between two nodes, or find that it is there; end those that it excludes."""
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
        if since is not None and since < known.valid_from and known.new is None:
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
    mentioned = frozenset(names_in(plan.facts[fact].text))
    for edge in [plan.edges[key] for key in dict.fromkeys(listed) if key in plan.edges]:
        _end_listed(plan, fact, edge, mentioned)
    if not stated and polarity.takes_back(plan.facts[fact].text):
        for edge in list(plan.edges.values()):
            if _is_its_value(plan.facts[fact], edge, mentioned):
                plan.close(edge, fact, TAKEN_BACK)


def _end_listed(plan: _Plan, fact: int, edge: _Edge, mentioned: frozenset[str]) -> None:
    """Close an edge that the model ends, if the fact is a reason to; else write why it stays."""
    own = [new for new in plan.added.values() if new.fact == fact]
    if edge.fact == fact:
        return
    replaced = any(
        (plan.root(new.source_id), new.relation) == (plan.root(edge.source), edge.relation)
        for new in own
    )
    if replaced and not polarity.adds(plan.facts[fact].text):
        plan.close(edge, fact, REPLACED)
    elif _takes_back(plan, fact, edge, mentioned) or _same_slot(plan.facts[fact], edge):
        plan.close(edge, fact, TAKEN_BACK)
    elif edge.id not in {line.relation_id for line in plan.lines if line.fact == fact}:
        plan.note(fact, GraphOutcome.NOOP, edge, KEPT)


def _takes_back(plan: _Plan, fact: int, edge: _Edge, mentioned: frozenset[str]) -> bool:
    """True if the fact says that the edge is not so, in words that are about it."""
    text = plan.facts[fact].text
    if not polarity.takes_back(text):
        return False
    if plain_name(edge.names[1]) in mentioned:
        return True
    source = plain_name(edge.names[0]) in mentioned
    return source and not words_about(edge.relation).isdisjoint(terms(text))


def _same_slot(fact: Fact, edge: _Edge) -> bool:
    """True if the fact gives a value of the edge's single-valued attribute of the same subject."""
    attribute = attribute_of(edge.relation)
    ours = slot(_subject(edge.names[0]), attribute)
    return ours is not None and ours == slot(fact.subject, fact.attribute) and single_valued(ours)


def _is_its_value(fact: Fact, edge: _Edge, mentioned: frozenset[str]) -> bool:
    """True if the edge is the value of the fact's attribute that the fact names."""
    if not fact.attribute or attribute_of(edge.relation) != attribute_name(fact.attribute):
        return False
    same = plain_name(_subject(edge.names[0])) == plain_name(_subject(fact.subject or ""))
    return same and plain_name(edge.names[1]) in mentioned


def _subject(name: str) -> str:
    return "user" if is_self(name) else name


def _is_proper(name: str) -> bool:
    """True for a name with a capital letter or a digit, or in a script without capitals."""
    return any(not letter.islower() for letter in name if letter.isalnum())
