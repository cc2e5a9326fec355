"""Ends of edges: those that a fact takes back or replaces, and those of the memories it retires.

See pipeline/domain/graph_plan for the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from pipeline.domain.facts import Fact, FactKind
from pipeline.domain.graph import GraphOutcome, LaterStatement, NewEdge, Relation
from pipeline.domain.graph_names import compared_name, is_of_its_attribute, still_says
from pipeline.domain.working_graph import EdgeEnd, WorkingEdge, WorkingGraph
from pipeline.text import polarity
from pipeline.text.names import named_in
from pipeline.text.past import is_past
from pipeline.text.relation_ends import ends_relation, may_end, states_relation
from pipeline.text.relation_names import has_several, words_about
from pipeline.text.terms import terms

REPLACED = "The fact gives another value, and there is one at a time."
TAKEN_BACK = "The fact takes it back."
KEPT = "The fact does not take it back."
UNDECIDED = "It contradicts it, and both memories are kept."
RETIRED = "Its memory is retired."
SAID_LATER = "It was said later."


def end_by(
    plan: WorkingGraph, fact: int, listed: Sequence[UUID], stated: Sequence[Relation]
) -> None:
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
        _end_values(plan, fact, named)
    if may_end(text):
        _end_earlier(plan, fact)


def _end_values(plan: WorkingGraph, fact: int, named: Collection[str]) -> None:
    """Close the current edges of the attribute whose value the fact takes back."""
    for edge in list(plan.edges.values()):
        of_attribute = is_of_its_attribute(plan.facts[fact], edge.names[0], edge.relation)
        if of_attribute and compared_name(edge.names[1]) in named:
            _close_unless_it_stays(plan, edge, fact, TAKEN_BACK)


def _end_earlier(plan: WorkingGraph, fact: int) -> None:
    """Move the ends of edges that ended after the fact was said, and that it takes back."""
    start, said_at = plan.start(fact), plan.sources[fact].said_at
    for edge in list(plan.past.values()):
        end = edge.end
        if end is None or not edge.valid_from <= start < end.at or end.at <= said_at:
            continue
        if edge.fact == fact or edge.protected or plan.stays_beside(fact, edge):
            continue
        if _takes_back(plan.facts[fact], edge.relation, edge.names):
            plan.end_earlier(edge, fact)
            _open_again(plan, edge, fact, end)


def _open_again(plan: WorkingGraph, edge: WorkingEdge, fact: int, end: EdgeEnd | None) -> None:
    """Add an edge again that the fact has ended, from the next statement of it before `end`."""
    again = [
        statement
        for statement in plan.later
        if statement.said_at > plan.sources[fact].said_at
        and plan.start(fact) < statement.since
        and (end is None or statement.since < end.at)
        and states_relation(statement.text, edge.relation, *edge.names)
    ]
    if again:
        first = min(again, key=lambda statement: statement.since)
        plan.open_again(edge, fact, since=first.since, memory_id=first.memory_id, end=end)


def ends_known(plan: WorkingGraph, edge: NewEdge, names: tuple[str, str]) -> list[EdgeEnd]:
    """The ends of a new edge by statements that were said after its fact and arrived before it."""
    return [
        EdgeEnd(max(edge.valid_from, statement.since), statement.event_id)
        for statement in plan.later
        if statement.said_at > plan.sources[edge.fact].said_at
        and statement.memory_id not in plan.memories[edge.fact].beside
        and _takes_back(statement, edge.relation, names)
    ]


def _takes_back(statement: Fact | LaterStatement, relation: str, names: tuple[str, str]) -> bool:
    """True if a statement of its own says that an edge is over.

    A value of the attribute must stand in a clause that takes something back.
    """
    if ends_relation(statement.text, relation, *names):
        return True
    value = compared_name(names[1])
    return is_of_its_attribute(statement, names[0], relation) and any(
        polarity.takes_back(clause) and value in named_in(clause, {value})
        for clause in polarity.clauses(statement.text)
    )


def _close_unless_it_stays(plan: WorkingGraph, edge: WorkingEdge, fact: int, reason: str) -> None:
    """Close an edge, unless its memory stands beside the fact, or it was said later.

    If it began before the fact and was said again after it, it opens again then.
    """
    if plan.stays_beside(fact, edge):
        plan.note(fact, GraphOutcome.NOOP, edge, UNDECIDED)
    elif plan.is_later(fact, edge):
        plan.note(fact, GraphOutcome.NOOP, edge, SAID_LATER)
    elif edge.said_at > plan.sources[fact].said_at and not edge.protected:
        plan.interrupt(edge, fact, reason)
    else:
        plan.close(edge, fact, reason)
        if edge.end is not None:  # no person protects it
            _open_again(plan, edge, fact, None)


def retire(plan: WorkingGraph, fact: int) -> None:
    """Close the current edges of the memories that the fact retires.

    Not those that another memory of the fact states.
    """
    memory = plan.memories[fact]
    for edge in list(plan.edges.values()):
        if edge.memory_id not in memory.retired or edge.fact == fact or edge.id in plan.restated:
            continue
        if not any(still_says(text, edge.names[1]) for text in memory.texts):
            plan.close(edge, fact, RETIRED)


def _reason_to_end(
    plan: WorkingGraph,
    fact: int,
    edge: WorkingEdge,
    named: Collection[str],
    edges: Iterable[WorkingEdge],
) -> str | None:
    """The reason for which a fact ends an edge that the model ends; None if the edge stays."""
    text = plan.facts[fact].text
    if is_past(text) and compared_name(edge.names[1]) not in named:
        return None
    if _is_replaced(plan, fact, edge, named):
        return REPLACED
    taken_back = polarity.takes_back(text) and _is_taken_back(plan, text, edge, named, edges)
    return TAKEN_BACK if taken_back or _gives_its_value(plan, fact, edge) else None


def _is_replaced(plan: WorkingGraph, fact: int, edge: WorkingEdge, named: Collection[str]) -> bool:
    """True if the fact puts a new current edge of the same source and name in its place."""
    if polarity.adds(plan.facts[fact].text):
        return False
    if has_several(edge.relation) and compared_name(edge.names[1]) not in named:
        return False
    own = [new for new in plan.added.values() if new.fact == fact and new.valid_to is None]
    return any(
        (plan.root(new.source_id), new.relation) == (plan.root(edge.source), edge.relation)
        for new in own
    )


def _is_taken_back(
    plan: WorkingGraph,
    text: str,
    edge: WorkingEdge,
    named: Collection[str],
    edges: Iterable[WorkingEdge],
) -> bool:
    """True if a fact that takes something back is about this edge.

    It names the destination; of several edges between the same two, in words about this one. If it
    names no destination of the source, its words are about the edge.
    """
    words = set(terms(text))
    about = not words_about(edge.relation).isdisjoint(words)
    same = [other for other in edges if plan.root(other.source) == plan.root(edge.source)]
    if compared_name(edge.names[1]) in named:
        pair = [
            other for other in same if plan.root(other.destination) == plan.root(edge.destination)
        ]
        return about or all(words_about(other.relation).isdisjoint(words) for other in pair)
    is_named = compared_name(edge.names[0]) in named
    return is_named and about and not any(compared_name(other.names[1]) in named for other in same)


def _gives_its_value(plan: WorkingGraph, fact: int, edge: WorkingEdge) -> bool:
    """True if the fact gives a later value of the edge's single-valued attribute."""
    given = plan.facts[fact]
    if given.kind is FactKind.PLAN or polarity.adds(given.text):
        return False
    return plan.start(fact) >= edge.valid_from and plan.is_of_slot(fact, edge)
