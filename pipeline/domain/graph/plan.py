"""Pure function from a model's answer to changes of the graph.

The facts are applied in order to a copy of the stored edges. For each edge that a fact states:

    it is current                     NOOP; UPDATE if the fact says that it began earlier
    it excludes current edges         INVALIDATE of these, then ADD: a source has one residence,
                                      employer or spouse at a time, and likes or dislikes a thing
    an excluded edge began later      ADD of an edge that has ended already
    an excluded edge ended later      UPDATE of its end, then ADD
    an excluded edge was said again   INVALIDATE of it, ADD of an edge that ends when it was said
                                      again, and ADD of the excluded edge from then on
    a later statement ends it         ADD of an edge that has ended then
    it gives a later thing's name     ADD, and INVALIDATE of what the later thing's edges replace
    the fact adds ("also") or plans   ADD; nothing ends
    it is of the past                 ADD of an edge that has ended; nothing ends
    otherwise                         ADD

So the edges of an attribute with one value at a time are a time line, and it is the same for any
order in which the statements arrive. A fact that a later statement supersedes states edges that
have ended. A stored statement that was said later and says only that the edge is over ends it, too
(pipeline/domain/graph/late_ends).

The memories decide what holds: an edge does not end by a fact that its memory contradicts in an
open conflict, or by one whose change was withheld; and it ends if the fact retires its memory. If
another memory of the fact says the same, it becomes an edge of that memory. Of an attribute with
one value at a time, a value that an active memory states is a current edge: a fact ends only those
of its own memory and of the memories that it retires, and its edge is current beside the others. A
decision to ADD a fact compares it with no memory of its attribute, so the time line alone places
its edge.

An edge that the model ends is closed only if the fact takes it back, puts another destination in
its place, or is about the same single-valued attribute; else the line is NOOP. A fact that takes a
value back closes its edge even if the model has not listed it. A fact ends no edge that it states,
and none by a value that it does not name. Times are those of the facts. Edges are closed and never
deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID, uuid5

from pipeline.domain.facts import Fact, FactKind
from pipeline.domain.graph.entity_resolution import NodeSet
from pipeline.domain.graph.late_ends import LateEnds
from pipeline.domain.graph.late_names import other_name
from pipeline.domain.graph.names import (
    affirms_denied,
    compared_name,
    is_loop,
    is_of_its_attribute,
    is_of_its_slot,
    roles_of,
    says_only,
    still_says,
)
from pipeline.domain.graph.values import (
    EndedEdge,
    FactMemory,
    GraphChanges,
    GraphEdge,
    GraphOutcome,
    GraphPlan,
    GraphTypes,
    LaterStatement,
    NewEdge,
    Node,
    Relation,
)
from pipeline.domain.graph.working_graph import (
    FactSource,
    WorkingGraph,
    holds_at,
    same_slot,
)
from pipeline.text.names import is_self, named_in, plain_name, says
from pipeline.text.relations.names import NAMING, canonical, ended_by, has_several, words_about
from pipeline.text.statements import polarity
from pipeline.text.terms import terms
from pipeline.text.times.past import is_past, past_until

STATED = "The fact states it."
KNOWN = "It is known already."
EARLIER = "The fact says that it began earlier."
REPLACED = "The fact gives another value, and there is one at a time."
EXCLUDED = "The fact cannot hold together with it."
TAKEN_BACK = "The fact takes it back."
FORMER = "It held before the current one."
KEPT = "The fact does not take it back."
UNDECIDED = "It contradicts it, and both memories are kept."
RETIRED = "Its memory is retired."
MOVED = "Its memory is retired, and another one states it."
SAID_LATER = "It was said later."


class _End(NamedTuple):
    """An end of an edge: by an event, or by a fact of the batch."""

    at: datetime
    event_id: UUID | None
    fact: int | None = None


def plan_changes(
    answer: GraphChanges,
    facts: Sequence[Fact],
    sources: Sequence[FactSource],
    memories: Sequence[FactMemory] = (),
    *,
    nodes: NodeSet,
    current: Iterable[GraphEdge],
    types: GraphTypes,
    later: Iterable[LaterStatement] = (),
) -> GraphPlan:
    """The changes that a model's answer makes to the graph.

    `memories`: what is stored of each fact. `current`: the current edges, and those that ended
    after the first of the facts. `later`: statements said after that which may end an edge.
    """
    edges = [replace(edge) for edge in current]
    plan = WorkingGraph(
        nodes,
        facts,
        sources,
        memories or [FactMemory()] * len(facts),
        {edge.id: edge for edge in edges if edge.valid_to is None},
        {edge.id: edge for edge in edges if edge.valid_to is not None},
        LateEnds(later),
    )
    for fact in range(len(facts)):
        stated = [row for row in answer.relations if row.fact == fact and not is_loop(row)]
        plan.restate(fact, stated, types)
        roles = roles_of(stated, facts[fact], types)
        for relation in stated:
            _state(plan, relation, roles, types)
        ended = [ending.relation_id for ending in answer.endings if ending.fact == fact]
        # An answer of an earlier release does not say which fact ends an edge.
        if fact == len(facts) - 1:
            ended += answer.ended
        _end(plan, fact, ended, stated)
        _retire(plan, fact)
    return GraphPlan(
        nodes.mentioned, nodes.merges, tuple(plan.added.values()), plan.ended, plan.lines
    )


def _state(
    plan: WorkingGraph, relation: Relation, roles: dict[str, str], types: GraphTypes
) -> None:
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
        destination = other_name(plan, fact, (ends[0].name, source), ends[1])
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


def _place(plan: WorkingGraph, fact: int, source: Node, relation: str, destination: Node) -> None:
    """Add an edge between two nodes, or find that it is there; end those that it excludes."""
    if (fact, plan.root(source.id), relation, plan.root(destination.id)) in plan.closed:
        return None
    names = (source.name, destination.name)
    from_ = plan.root(source.id)
    known = plan.same(from_, relation, plan.root(destination.id))
    if relation in NAMING:  # both nodes have one root; the destination is a name
        known = next(
            (e for e in plan.edges.values()
             if e.relation == relation and e.destination_id == destination.id), None,
        )  # fmt: skip
    edge = NewEdge(
        _edge_id(plan, fact, source, relation, destination),
        source.id, relation, destination.id, fact, plan.start(fact),
    )  # fmt: skip
    excluded = plan.excluded(fact, from_, relation, destination)
    others = [*excluded, *([known] if known else [])]
    if is_past(plan.facts[fact].text):
        return _place_in_past(plan, edge, names, others)
    late_ends = _late_ends(plan, edge, names)
    if known is None or any(end.at < known.valid_from for end in late_ends):
        return _place_in_time(plan, edge, names, others, late_ends)
    if _is_known(plan, edge, known, excluded):
        return plan.note(fact, GraphOutcome.NOOP, known, KNOWN)
    if _is_of_a_time_line(plan, fact, known, excluded):
        return _place_in_time(plan, edge, names, others, late_ends)
    del plan.edges[known.id]
    plan.ended.append(EndedEdge(known.id, None, fact))
    plan.add(edge, names, EARLIER, GraphOutcome.UPDATE)
    return None


def _late_ends(plan: WorkingGraph, edge: NewEdge, names: tuple[str, str]) -> list[_End]:
    """The ends of a new edge by statements that were said after its fact and arrived before it.

    None of the batch itself: its facts are related together. None by a name of several things.
    """
    ends = plan.late.of(edge.relation, names)
    if not ends or any(map(plan.nodes.has_namesake, (edge.source_id, edge.destination_id))):
        return []
    said_at, own = plan.sources[edge.fact].said_at, {source.event_id for source in plan.sources}
    owners = plan.owners(edge.destination_id) if any(owner for _, owner in ends) else {}
    return [
        _End(statement.since, statement.event_id)
        for statement, owner in ends
        if statement.said_at > said_at
        and statement.since > edge.valid_from
        and statement.event_id not in own
        and statement.memory_id not in plan.memories[edge.fact].beside
        and (
            owner is None
            or any(holds_at(other, statement.since) for other in owners.get(owner, ()))
        )
    ]


def _is_known(
    plan: WorkingGraph, edge: NewEdge, known: GraphEdge, excluded: Sequence[GraphEdge]
) -> bool:
    """True if a current edge says all that a new one of the same says."""
    if known.valid_from <= edge.valid_from:
        return True
    late = known.said_at > plan.sources[edge.fact].said_at
    if plan.facts[edge.fact].valid_from is None and not late:
        return True
    # An edge of this batch, or of a protected memory, keeps its beginning.
    return (known.new is not None or known.protected) and not _is_of_a_time_line(
        plan, edge.fact, known, excluded
    )


def _is_of_a_time_line(
    plan: WorkingGraph, fact: int, known: GraphEdge, excluded: Sequence[GraphEdge]
) -> bool:
    """True if another value may hold between a late statement and the current edge of the same."""
    if known.said_at <= plan.sources[fact].said_at:
        return False
    return bool(ended_by(known.relation)) or any(e.relation == known.relation for e in excluded)


def _place_in_time(
    plan: WorkingGraph,
    edge: NewEdge,
    names: tuple[str, str],
    others: Sequence[GraphEdge],
    late_ends: Sequence[_End],
) -> None:
    """Add an edge between those that exclude it: it ends what held until then, and ends with the
    next one, or when a later statement ends it.
    """
    fact, start = edge.fact, edge.valid_from
    covering = [
        o for o in others if o.valid_from <= start and (not o.valid_to or o.valid_to > start)
    ]
    same = plan.root(edge.destination_id)
    for other in covering:
        if other.relation == edge.relation and plan.root(other.destination_id) == same:
            return plan.note(fact, GraphOutcome.NOOP, other, KNOWN)
    following = [other for other in others if other.valid_from > start]
    following += _end_covering(plan, edge, covering)
    own = is_of_its_slot(plan.facts[fact], names[0], edge.relation)
    if own and plan.is_current(fact) and not plan.memories[fact].added:
        # The fact's memory holds now, beside other values or in their place.
        following, late_ends = [], []
    ends = [_End(other.valid_from, other.event_id, other.fact) for other in following]
    ends += late_ends
    successor = plan.memories[fact].successor
    if successor is not None and (
        not still_says(successor.text, names[1])
        or affirms_denied(plan.facts[fact].text, successor.text, names[1])
    ):
        ends.append(_End(max(start, successor.since), successor.event_id))
    if ends:
        end = min(ends, key=lambda end: end.at)
        if known := plan.known_until(edge, end.at):
            return plan.note(fact, GraphOutcome.NOOP, known, KNOWN)
        edge = replace(edge, valid_to=end.at, followed_by=end.event_id, ended_by=end.fact)
    plan.add(edge, names, FORMER if ends else STATED, GraphOutcome.ADD)
    return None


def _place_in_past(
    plan: WorkingGraph, edge: NewEdge, names: tuple[str, str], others: Sequence[GraphEdge]
) -> None:
    """Add an edge that ends with the time that its fact names, and end no other."""
    said_at = plan.sources[edge.fact].said_at
    following = [other.valid_from for other in others if other.valid_from > edge.valid_from]
    until = min(past_until(plan.facts[edge.fact].text) or said_at, said_at, *following)
    edge = replace(edge, valid_to=max(until, edge.valid_from), ended_by=edge.fact)
    plan.add(edge, names, FORMER, GraphOutcome.ADD)


def _end_covering(
    plan: WorkingGraph, edge: NewEdge, covering: Sequence[GraphEdge]
) -> list[GraphEdge]:
    """End the edges that hold when a new one begins. Returns those that open again later."""
    fact, again = edge.fact, []
    last = max(edge.valid_from, plan.sources[fact].said_at)
    for other in covering:
        reason = REPLACED if other.relation == edge.relation else EXCLUDED
        if other.valid_to is not None:
            plan.end_earlier(other, fact)
        elif other.said_at > last and not other.protected:
            again.append(plan.interrupt(other, fact, reason))
        elif plan.keeps_its_memory(fact, other):
            plan.note(fact, GraphOutcome.NOOP, other, UNDECIDED)
        else:
            plan.close(other, fact, reason)
    return again


def _edge_id(plan: WorkingGraph, fact: int, source: Node, relation: str, destination: Node) -> UUID:
    """Id of a new edge: the same on every retry."""
    event = plan.sources[fact]
    key = f"relation:{event.seq}:{source.id}:{relation}:{destination.id}"
    edge_id = uuid5(event.event_id, key)
    return edge_id if edge_id not in plan.added else uuid5(event.event_id, f"{key}:{fact}")


def _end(plan: WorkingGraph, fact: int, listed: Sequence[UUID], stated: Sequence[Relation]) -> None:
    """Close the current edges that the fact takes back, and of `listed` those it replaces."""
    edges = list(plan.edges.values())
    text = plan.facts[fact].text
    named = named_in(text, {compared_name(name) for edge in edges for name in edge.names})
    for edge in [plan.edges[key] for key in dict.fromkeys(listed) if key in plan.edges]:
        if edge.fact == fact or edge.id in plan.restated:
            continue
        if reason := _reason_to_end(plan, fact, edge, named, edges):
            _close_unless_it_stays(plan, edge, fact, reason)
        elif edge.id not in {line.relation_id for line in plan.lines if line.fact == fact}:
            plan.note(fact, GraphOutcome.NOOP, edge, KEPT)
    if not stated and polarity.takes_back(text):
        for edge in list(plan.edges.values()):
            of_attribute = is_of_its_attribute(plan.facts[fact], edge.source, edge.relation)
            if of_attribute and compared_name(edge.destination) in named:
                _close_unless_it_stays(plan, edge, fact, TAKEN_BACK)


def _close_unless_it_stays(plan: WorkingGraph, edge: GraphEdge, fact: int, reason: str) -> None:
    """Close an edge, unless its memory stands beside the fact, or it was said later.

    If it began before the fact and was said again after it, it opens again then; not if the text of
    its memory may say something else.
    """
    again = edge.said_at > plan.sources[fact].said_at
    if plan.stays_beside(fact, edge):
        plan.note(fact, GraphOutcome.NOOP, edge, UNDECIDED)
    elif plan.is_later(fact, edge):
        plan.note(fact, GraphOutcome.NOOP, edge, SAID_LATER)
    elif again and not edge.protected and says_only(edge.text, edge.names, edge.relation):
        plan.interrupt(edge, fact, reason)
    else:
        plan.close(edge, fact, reason)


def _retire(plan: WorkingGraph, fact: int) -> None:
    """Close the current edges of the memories that the fact retires.

    Those that another memory of the fact states become its own.
    """
    memory = plan.memories[fact]
    for edge in list(plan.edges.values()):
        if edge.memory_id not in memory.retired or edge.fact == fact:
            continue
        restated = edge.id in plan.restated
        if memory.texts and (
            restated or any(still_says(text, edge.destination) for text in memory.texts)
        ):
            plan.move(edge, fact, MOVED)
        elif not restated:
            plan.close(edge, fact, RETIRED)


def _reason_to_end(
    plan: WorkingGraph,
    fact: int,
    edge: GraphEdge,
    named: Collection[str],
    edges: Iterable[GraphEdge],
) -> str | None:
    """The reason for which a fact ends an edge that the model ends; None if the edge stays."""
    text = plan.facts[fact].text
    if is_past(text) and compared_name(edge.destination) not in named:
        return None
    if _is_replaced(plan, fact, edge, named):
        return REPLACED
    taken_back = polarity.takes_back(text) and _is_taken_back(plan, text, edge, named, edges)
    return TAKEN_BACK if taken_back or _gives_its_value(plan, fact, edge) else None


def _is_replaced(plan: WorkingGraph, fact: int, edge: GraphEdge, named: Collection[str]) -> bool:
    """True if the fact puts a new current edge of the same source and name in its place."""
    if polarity.adds(plan.facts[fact].text):
        return False
    if has_several(edge.relation) and compared_name(edge.destination) not in named:
        return False
    own = [new for new in plan.added.values() if new.fact == fact and new.valid_to is None]
    return any(
        (plan.root(new.source_id), new.relation) == (plan.root(edge.source_id), edge.relation)
        for new in own
    )


def _is_taken_back(
    plan: WorkingGraph,
    text: str,
    edge: GraphEdge,
    named: Collection[str],
    edges: Iterable[GraphEdge],
) -> bool:
    """True if a fact that takes something back is about this edge.

    It names the destination; of several edges between the same two, in words about this one. If it
    names no destination of the source, its words are about the edge.
    """
    words = set(terms(text))
    about = not words_about(edge.relation).isdisjoint(words)
    same = [other for other in edges if plan.root(other.source_id) == plan.root(edge.source_id)]
    if compared_name(edge.destination) in named:
        pair = [
            other
            for other in same
            if plan.root(other.destination_id) == plan.root(edge.destination_id)
        ]
        return about or all(words_about(other.relation).isdisjoint(words) for other in pair)
    is_named = compared_name(edge.source) in named
    return (
        is_named and about and not any(compared_name(other.destination) in named for other in same)
    )


def _gives_its_value(plan: WorkingGraph, fact: int, edge: GraphEdge) -> bool:
    """True if the fact gives a later value of the edge's single-valued attribute."""
    given = plan.facts[fact]
    if given.kind is FactKind.PLAN or polarity.adds(given.text):
        return False
    return plan.start(fact) >= edge.valid_from and same_slot(given, edge)
