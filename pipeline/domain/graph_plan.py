"""Pure function from a model's answer to changes of the graph.

The facts are applied in order to a copy of the stored edges. For each edge that a fact states:

    it is current                     NOOP; UPDATE if the fact says that it began earlier
    it excludes current edges         INVALIDATE of these, then ADD: a source has one residence,
                                      employer or spouse at a time, and likes or dislikes a thing
    an excluded edge began later      ADD of an edge that has ended already
    an excluded edge ended later      UPDATE of its end, then ADD
    an excluded edge was said again   INVALIDATE of it, ADD of an edge that ends when it was said
                                      again, and ADD of the excluded edge from then on
    a later statement takes it back   ADD of an edge that has ended then
    the fact adds ("also") or plans   ADD; nothing ends
    it is of the past                 ADD of an edge that has ended; nothing ends
    otherwise                         ADD

So the edges of an attribute with one value at a time are a time line, and it is the same for any
order in which the statements arrive. A fact that a later statement supersedes states edges that
have ended. A statement that takes an edge back and arrives before it ends it, as one that arrives
after it does: the stored statements that name both ends are read again, and one ends the edge if
its words say nothing else (pipeline/text/relation_ends). If two names prove to be of one thing, its
edges become one time line.

The memories decide what holds: an edge does not end by a fact that its memory contradicts in an
open conflict, or by one whose change was withheld; and it ends if the fact retires its memory,
unless another memory of the fact says the same. Of an attribute with one value at a time, a value
that an active memory states is a current edge: a fact ends only those of its own memory and of the
memories that it retires, and its edge is current beside the others. A decision to ADD a fact
compares it with no memory of its attribute, so the time line alone places its edge.

An edge that the model ends is closed only if the fact takes it back, puts another destination in
its place, or is about the same single-valued attribute; else the line is NOOP. A fact that takes a
value back closes its edge even if the model has not listed it. A fact ends no edge that it states,
and none by a value that it does not name. Times are those of the facts. Edges are closed and never
deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID, uuid5

from pipeline.domain.entity_resolution import NodeSet
from pipeline.domain.facts import Fact, FactKind
from pipeline.domain.graph import (
    CurrentEdge,
    EndedEdge,
    FactMemory,
    FactSource,
    GraphChanges,
    GraphOutcome,
    GraphPlan,
    GraphTypes,
    LaterStatement,
    NewEdge,
    Node,
    Relation,
)
from pipeline.domain.graph_endings import REPLACED, UNDECIDED, end_by, ends_known, retire
from pipeline.domain.graph_names import is_loop, is_of_its_slot, roles_of, still_says
from pipeline.domain.working_graph import EdgeEnd, WorkingEdge, WorkingGraph
from pipeline.text.names import is_self, plain_name, says
from pipeline.text.past import is_past, past_until
from pipeline.text.relation_names import NAMING, canonical, ended_by

STATED = "The fact states it."
KNOWN = "It is known already."
EARLIER = "The fact says that it began earlier."
EXCLUDED = "The fact cannot hold together with it."
FORMER = "It held before the current one."


def plan_changes(
    answer: GraphChanges,
    facts: Sequence[Fact],
    sources: Sequence[FactSource],
    memories: Sequence[FactMemory] = (),
    *,
    nodes: NodeSet,
    current: Iterable[CurrentEdge],
    types: GraphTypes,
    later: Sequence[LaterStatement] = (),
) -> GraphPlan:
    """The changes that a model's answer makes to the graph.

    `memories`: what is stored of each fact. `current`: the current edges, and those that ended
    after the first of the facts. `later`: statements of the scope said after that.
    """
    edges = [WorkingEdge.stored(edge) for edge in current]
    plan = WorkingGraph(
        nodes,
        facts,
        sources,
        memories or [FactMemory()] * len(facts),
        {edge.id: edge for edge in edges if edge.valid_to is None},
        {edge.id: edge for edge in edges if edge.valid_to is not None},
        later=later,
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
        end_by(plan, fact, ended, stated)
        retire(plan, fact)
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
        merged = len(plan.nodes.merges)
        destination = plan.nodes.alias(ends[1], source)
        if len(plan.nodes.merges) > merged:
            plan.join(fact, plan.root(source.id))
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
             if e.relation == relation and e.destination == destination.id), None,
        )  # fmt: skip
    edge = NewEdge(
        _edge_id(plan, fact, source, relation, destination),
        source.id, relation, destination.id, fact, plan.start(fact),
    )  # fmt: skip
    excluded = plan.excluded(fact, from_, relation, destination)
    others = [
        *excluded,
        *([known] if known else []),
        *plan.ended_since(fact, from_, relation, plan.root(destination.id)),
    ]
    if is_past(plan.facts[fact].text):
        return _place_in_past(plan, edge, names, others)
    taken_back = ends_known(plan, edge, names)
    if known is None or any(end.at < known.valid_from for end in taken_back):
        return _place_in_time(plan, edge, names, others, taken_back)
    if _is_known(plan, edge, known, excluded):
        return plan.note(fact, GraphOutcome.NOOP, known, KNOWN)
    if _is_of_a_time_line(plan, fact, known, excluded):
        return _place_in_time(plan, edge, names, others, taken_back)
    del plan.edges[known.id]
    plan.ended.append(EndedEdge(known.id, None, fact))
    plan.add(edge, names, EARLIER, GraphOutcome.UPDATE)
    return None


def _is_known(
    plan: WorkingGraph, edge: NewEdge, known: WorkingEdge, excluded: Sequence[WorkingEdge]
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
    plan: WorkingGraph, fact: int, known: WorkingEdge, excluded: Sequence[WorkingEdge]
) -> bool:
    """True if another value may hold between a late statement and the current edge of the same."""
    if known.said_at <= plan.sources[fact].said_at:
        return False
    return bool(ended_by(known.relation)) or any(e.relation == known.relation for e in excluded)


def _place_in_time(
    plan: WorkingGraph,
    edge: NewEdge,
    names: tuple[str, str],
    others: Sequence[WorkingEdge],
    taken_back: Sequence[EdgeEnd],
) -> None:
    """Add an edge between those that exclude it: it ends what held until then, and ends with the
    next one, or when a statement takes it back.
    """
    fact, start = edge.fact, edge.valid_from
    covering = [
        o for o in others if o.valid_from <= start and (not o.valid_to or o.valid_to > start)
    ]
    same = plan.root(edge.destination_id)
    for other in covering:
        if other.relation == edge.relation and plan.root(other.destination) == same:
            return plan.note(fact, GraphOutcome.NOOP, other, KNOWN)
    following = [other for other in others if other.valid_from > start]
    following += _end_covering(plan, edge, covering)
    own = is_of_its_slot(plan.facts[fact], names[0], edge.relation)
    if own and plan.is_current(fact) and not plan.memories[fact].added:
        # The memory of the fact holds now, beside other values or in their place.
        following, taken_back = [], []
    ends = [EdgeEnd(other.valid_from, other.event_id, other.fact) for other in following]
    ends += taken_back
    successor = plan.memories[fact].successor
    if successor is not None and not still_says(successor.text, names[1]):
        ends.append(EdgeEnd(max(start, successor.since), successor.event_id))
    if ends:
        end = min(ends, key=lambda end: end.at)
        edge = replace(edge, valid_to=end.at, followed_by=end.event_id, ended_by=end.fact)
    plan.add(edge, names, FORMER if ends else STATED, GraphOutcome.ADD)
    return None


def _place_in_past(
    plan: WorkingGraph, edge: NewEdge, names: tuple[str, str], others: Sequence[WorkingEdge]
) -> None:
    """Add an edge that ends with the time that its fact names, and end no other."""
    said_at = plan.sources[edge.fact].said_at
    following = [other.valid_from for other in others if other.valid_from > edge.valid_from]
    until = min(past_until(plan.facts[edge.fact].text) or said_at, said_at, *following)
    edge = replace(edge, valid_to=max(until, edge.valid_from), ended_by=edge.fact)
    plan.add(edge, names, FORMER, GraphOutcome.ADD)


def _end_covering(
    plan: WorkingGraph, edge: NewEdge, covering: Sequence[WorkingEdge]
) -> list[WorkingEdge]:
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
