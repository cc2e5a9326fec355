"""Another name that arrives after a later statement of it.

"Bob works at Aldi" of April is stored, and then "Robert works at Lidl" and "Robert is also known as
Bob" of January arrive. In order, Bob would have been Robert in April, so the work at Lidl has ended
then. In doubt nothing ends: the whole statement must give the name, and nothing of the other thing
was said before it. See pipeline/text/statements/other_names.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from uuid import UUID

from pipeline.domain.graph.values import Entity, GraphEdge, Node
from pipeline.domain.graph.working_graph import WorkingGraph, ends_relation
from pipeline.text.names import says
from pipeline.text.relations.names import NAMING, ended_by, opposites
from pipeline.text.statements import polarity
from pipeline.text.statements.other_names import says_other_name
from pipeline.text.times.past import is_past

ONE_THING = "Another name of the same thing has a later value."

# Questions, quotations, conditions, guesses, plans and hearsay. Capitals tell "Will" from "will".
_DOUBT = re.compile(
    r"[?¿？\"“”„«»「」『』]"
    r"|\b(?:[Ii]f|[Uu]nless|[Mm]aybe|[Pp]erhaps|[Pp]robably|[Aa]llegedly|[Aa]lmost|[Nn]early|will"
    r"|would|may|might|could|should|says?|said|thinks?|believes?|hopes?|wants?|plans?|wishes|dreams"
    r"|[Ww]enn|[Ff]alls|[Vv]ielleicht|[Aa]ngeblich|[Ff]ast|[Bb]einahe|wird|würde|könnte|sollte"
    r"|möchte|sagte?|glaubt|hofft|[Ss]i|[Qq]uizás?|[Tt]al vez|[Cc]asi|podría|dic[ei]n?|dijo|cree"
    r"|quiere|va a)\b|如果|要是|可能|也许|大概|打算|想|听说|据说|差点|说|会"
)
# Marks behind a name of which something is, and words before it.
_ITS = ("'", "’", "s ", "的")
_OF = (" of ", " von ", " de ")

# Relations that a later one ends, with the destination, if it matters.
_Ended = tuple[str, UUID | None]


def other_name(plan: WorkingGraph, fact: int, named: tuple[str, Node], entity: Entity) -> Node:
    """The node of another name of a node, merged into it. What its later edges replace has ended.

    `named`: the name for which the fact gives another one, and its node.
    """
    name, node = named
    says_so = says_other_name(plan.facts[fact].text, name, entity.name)
    before = plan.touching(plan.root(node.id)) if says_so else {}
    merged = len(plan.nodes.merges)
    other = plan.nodes.alias(entity, node)
    is_joined = says_so and len(plan.nodes.merges) > merged
    if is_joined and not any(map(plan.nodes.has_namesake, (node.id, other.id))):
        _end_replaced(plan, fact, plan.root(node.id), before)
    return other


def _end_replaced(
    plan: WorkingGraph, fact: int, root: UUID, before: Mapping[UUID, GraphEdge]
) -> None:
    """End the current edges of one name that later edges of the other one replace.

    `before`: the edges of the thing without its new name.
    """
    first = list(before.values())
    if any(_joins(plan, root, edge) for edge in first):
        return  # no thing has a relation with itself
    second = [edge for key, edge in plan.touching(root).items() if key not in before]
    owned = (edge for edge in (*first, *second) if edge.relation == "owns")
    if any(plan.root(edge.destination_id) == root for edge in owned):
        return  # a pet may have the name of a person
    for own, others in ((first, second), (second, first)):
        # Else another person of the other name may have been known before.
        if all(_is_said_after(plan, fact, edge) for edge in others):
            _end_own(plan, fact, root, own, others)


def _end_own(
    plan: WorkingGraph,
    fact: int,
    root: UUID,
    own: Sequence[GraphEdge],
    others: Sequence[GraphEdge],
) -> None:
    """End the current edges of one name that those of the other one replace."""
    following = _following(plan, root, others)
    for edge in own:
        if edge.id in plan.edges and plan.root(edge.source_id) == root:
            later = _next(plan, following, edge)
            if later is not None and _decides(plan, later, edge):
                plan.end_with(edge, fact, later, ONE_THING)


def _is_said_after(plan: WorkingGraph, fact: int, edge: GraphEdge) -> bool:
    """True if an edge is stored, and began and was said after the fact."""
    said_at = plan.sources[fact].said_at
    return edge.fact is None and edge.said_at > said_at and edge.valid_from > said_at


def _joins(plan: WorkingGraph, root: UUID, edge: GraphEdge) -> bool:
    """True for an edge between a thing and its other name, which are two things then."""
    ends = plan.root(edge.source_id), plan.root(edge.destination_id)
    return ends == (root, root) and edge.relation not in NAMING


def _following(
    plan: WorkingGraph, root: UUID, edges: Iterable[GraphEdge]
) -> dict[_Ended, list[GraphEdge]]:
    """The edges of a source that end others, by what they end, in the order of their beginnings."""
    following: dict[_Ended, list[GraphEdge]] = {}
    for edge in sorted(edges, key=lambda edge: edge.valid_from):
        if plan.root(edge.source_id) != root:
            continue
        name = edge.destination
        for ended in ended_by(edge.relation):
            if ends_relation(edge.relation, name, ended, superseded=False):
                following.setdefault((ended, None), []).append(edge)
        for ended in opposites(edge.relation):
            following.setdefault((ended, plan.root(edge.destination_id)), []).append(edge)
    return following


def _next(
    plan: WorkingGraph, following: Mapping[_Ended, Sequence[GraphEdge]], edge: GraphEdge
) -> GraphEdge | None:
    """The first edge that ends another one, and gives another value."""
    same = plan.root(edge.destination_id)
    first: list[GraphEdge] = []
    for ended in ((edge.relation, None), (edge.relation, same)):
        edges = following.get(ended, ())
        at = bisect_right(edges, edge.valid_from, key=lambda other: other.valid_from)
        while at < len(edges) and _is_same(plan, edges[at], edge.relation, same):
            at += 1
        first += edges[at : at + 1]
    return min(first, key=lambda other: other.valid_from, default=None)


def _is_same(plan: WorkingGraph, edge: GraphEdge, relation: str, destination: UUID) -> bool:
    return edge.relation == relation and plan.root(edge.destination_id) == destination


def _decides(plan: WorkingGraph, later: GraphEdge, edge: GraphEdge) -> bool:
    """True if the later of two statements decides: neither is in a conflict.

    Two values of one slot are compared by the decisions about their memories. Only one later
    statement is read for each edge.
    """
    if later.said_at <= edge.said_at or later.disputed or edge.disputed:
        return False
    if edge.fact is not None and later.memory_id in plan.memories[edge.fact].beside:
        return False
    return (edge.slot is None or edge.slot != later.slot) and _states_its_value(later)


def _states_its_value(edge: GraphEdge) -> bool:
    """True if an active memory states the edge as a value that holds from then on, and alone."""
    text, (source, destination) = edge.text, edge.names
    if not says(text, destination) or polarity.adds(text) or is_past(text) or _DOUBT.search(text):
        return False
    # "Does not like" is a value; "does not work at Aldi" is none.
    if polarity.negates(text) and not opposites(edge.relation):
        return False
    return not _is_of_its_own(text, source)


def _is_of_its_own(text: str, name: str) -> bool:
    """True if a text is about something of a name: "Bob's brother", "the brother of Bob"."""
    parts = text.casefold().split(name.casefold())
    return any(
        before.endswith(_OF) or behind.startswith(_ITS) for before, behind in pairwise(parts)
    )
