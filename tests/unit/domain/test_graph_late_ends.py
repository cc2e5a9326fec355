"""Ends of edges that arrive before their beginnings, from the stored statements said later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from pipeline.domain.entity_resolution import NodeSet
from pipeline.domain.graph import (
    CurrentEdge,
    Entity,
    FactMemory,
    FactSource,
    GraphChanges,
    GraphPlan,
    GraphTypes,
    LaterStatement,
    Node,
    Relation,
)
from pipeline.domain.graph_plan import plan_changes
from pipeline.domain.working_graph import ONE_THING
from tests.unit.domain.test_graph_plan import JUNE, MARCH, MAY, SCOPE, Edge, known, lines, said

LATE_EVENT, END_EVENT = UUID(int=3), UUID(int=4)
MEMORY = UUID(int=5)
JULY = datetime(2026, 7, 1, tzinfo=UTC)
SQUASH: Edge = ("Edda", "plays", "squash")


def later(text: str, at: datetime = MAY, **more: object) -> LaterStatement:
    statement = LaterStatement(text, at, at, MEMORY, END_EVENT)
    return replace(statement, **more)  # type: ignore[arg-type]


def arriving(
    text: str,
    edge: Edge | None,
    statements: Sequence[LaterStatement] = (),
    stored: tuple[list[Node], list[CurrentEdge]] = ([], []),
    *,
    at: datetime = MARCH,
    memory: FactMemory | None = None,
) -> GraphPlan:
    """The plan of a fact that was said at a time, where later statements are stored."""
    relations: tuple[Relation, ...] = ()
    if edge is not None:
        source, relation, destination = edge
        kind = "place" if relation == "lives_in" else "thing"
        ends = Entity(source, "person"), Entity(destination, kind)
        relations = (Relation(ends[0], relation, ends[1], 0),)
    return plan_changes(
        GraphChanges(relations),
        [said(text)],
        [FactSource(LATE_EVENT, 1, at)],
        [memory or FactMemory()],
        nodes=NodeSet(SCOPE, stored[0]),
        current=stored[1],
        types=GraphTypes(),
        later=statements,
    )


@pytest.mark.parametrize(
    ("statement", "until"),
    [
        (later("Edda stopped playing squash."), MAY),
        (later("Edda gave up squash.", since=JUNE), JUNE),
        (later("Edda gave up squash.", since=datetime(2020, 1, 1, tzinfo=UTC)), MARCH),
        (later("Edda lost at squash."), None),
        (later("Ines stopped playing squash."), None),
        (later("Edda stopped playing squash.", at=MARCH), None),
    ],
)
def test_a_late_edge_ends_with_the_stored_statement_that_takes_it_back(
    statement: LaterStatement, until: datetime | None
):
    [edge] = arriving("Edda plays squash.", SQUASH, [statement]).edges
    assert (edge.valid_from, edge.valid_to) == (MARCH, until)
    assert edge.followed_by == (END_EVENT if until else None)


def test_of_two_ends_the_first_counts():
    statements = [later("Edda quit squash.", JUNE), later("Edda no longer plays squash.", MAY)]
    [edge] = arriving("Edda plays squash.", SQUASH, statements).edges
    assert edge.valid_to == MAY


def test_a_value_of_the_attribute_ends_in_the_clause_that_takes_it_back():
    moved = later(
        "Edda does not live in Bergen any more since the divorce, but in Lund.",
        subject="Edda", attribute="residence",
    )  # fmt: skip
    for place, until in (("Bergen", MAY), ("Lund", None)):
        edge = ("Edda", "lives_in", place)
        [new] = arriving(f"Edda lives in {place}.", edge, [moved]).edges
        assert new.valid_to == until


def test_a_statement_that_stands_beside_the_fact_ends_nothing():
    memory = FactMemory(UUID(int=9), ("Edda plays squash.",), beside=(MEMORY,))
    statements = [later("Edda quit squash.")]
    [edge] = arriving("Edda plays squash.", SQUASH, statements, memory=memory).edges
    assert edge.valid_to is None


def test_an_edge_that_began_again_is_another_one_than_the_late_one():
    stored = known(SQUASH, since=JUNE)
    statements = [later("Edda quit squash.", MAY)]
    plan = arriving("Edda plays squash.", SQUASH, statements, stored)
    assert [(edge.valid_from, edge.valid_to) for edge in plan.edges] == [(MARCH, MAY)]
    assert plan.ended == []


def test_an_edge_that_has_ended_is_not_stated_twice():
    nodes, [edge] = known(SQUASH, since=MARCH)
    ended = replace(edge, valid_to=JUNE)
    plan = arriving("Edda plays squash.", SQUASH, [], (nodes, [ended]), at=MAY)
    assert lines(plan) == ["NOOP Edda plays squash"]


@pytest.mark.parametrize("end", [None, JULY])
def test_a_late_end_leaves_what_was_said_again_after_it(end: datetime | None):
    nodes, [edge] = known(SQUASH, since=MARCH)
    stored = replace(edge, valid_to=end, ended_by=END_EVENT if end else None)
    again = later("Edda plays squash again.", JUNE)
    plan = plan_changes(
        GraphChanges(ended=(stored.id,)),
        [said("Edda no longer plays squash.")],
        [FactSource(LATE_EVENT, 1, MAY)],
        nodes=NodeSet(SCOPE, nodes),
        current=[stored],
        types=GraphTypes(),
        later=[again],
    )
    assert [(ended.valid_to, ended.fact) for ended in plan.ended] == [(MAY, 0)]
    [rest] = plan.edges
    assert (rest.valid_from, rest.valid_to, rest.memory_id) == (JUNE, end, MEMORY)
    assert rest.followed_by == stored.ended_by


def test_a_late_marriage_ends_with_the_divorce_that_arrived_before_it():
    stored = known(("Tove", "divorced_from", "Ingmar"), since=JUNE)
    plan = arriving("Tove married Ingmar.", ("Tove", "married_to", "Ingmar"), [], stored)
    assert [(edge.relation, edge.valid_to) for edge in plan.edges] == [("married_to", JUNE)]


@pytest.mark.parametrize(
    ("text", "until"),
    [("Edda also works at Tidewater.", None), ("Edda works at Tidewater.", JUNE)],
)
def test_a_later_value_that_adds_does_not_end_the_late_one(text: str, until: datetime | None):
    nodes, [edge] = known(("Edda", "works_at", "Tidewater"), since=JUNE)
    stored = replace(edge, text=text, said_at=JUNE)
    plan = arriving("Edda works at Nordlys.", ("Edda", "works_at", "Nordlys"), [],
                    (nodes, [stored]))  # fmt: skip
    assert [new.valid_to for new in plan.edges] == [until]


def test_two_names_of_one_person_share_a_time_line():
    nodes, current = known(("Margarethe", "lives_in", "Lund"), since=MARCH)
    more_nodes, more = known(("Grete", "lives_in", "Bergen"), since=JUNE)
    plan = arriving(
        "Margarethe is also known as Grete.",
        ("Margarethe", "also_known_as", "Grete"),
        [],
        ([*nodes, *more_nodes], [*current, *more]),
        at=JULY,
    )
    assert [(ended.id, ended.valid_to) for ended in plan.ended] == [(current[0].id, JUNE)]
    assert [line.reason for line in plan.lines if line.outcome == "INVALIDATE"] == [ONE_THING]
