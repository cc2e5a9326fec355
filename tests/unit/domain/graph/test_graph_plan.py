"""Changes of the graph: from a model's answer, the stored nodes and the current edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid5

import pytest

from pipeline.domain.facts import Fact, FactKind
from pipeline.domain.graph.entity_resolution import NodeSet, may_be_same
from pipeline.domain.graph.plan import KEPT, REPLACED, TAKEN_BACK, plan_changes
from pipeline.domain.graph.values import (
    EdgeEnding,
    Entity,
    FactMemory,
    GraphChanges,
    GraphEdge,
    GraphPlan,
    GraphTypes,
    Node,
    Relation,
    name_key,
    node_id,
)
from pipeline.domain.graph.working_graph import PROTECTED, FactSource
from pipeline.domain.messages import Source
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.text.names import plain_name

SCOPE = Scope(ProjectId(UUID(int=1)), user_id="maya")
EVENT = UUID(int=2)
MARCH, MAY, JUNE = (datetime(2026, month, 1, tzinfo=UTC) for month in (3, 5, 6))
Edge = tuple[str, str, str]


def node(name: str, kind: str = "person", **more: object) -> Node:
    key = str(more.pop("key", name_key(name)))
    made = Node(node_id(SCOPE, key), name, key, plain_name(name), kind)
    return replace(made, **more)  # type: ignore[arg-type]


def known(*edges: Edge, since: datetime = MARCH) -> tuple[list[Node], list[GraphEdge]]:
    """Stored nodes and current edges of these names."""
    kinds = {"lives_in": "place", "works_at": "organization"}
    nodes: dict[str, Node] = {}
    for source, relation, destination in edges:
        nodes.setdefault(source, node(source))
        nodes.setdefault(destination, node(destination, kinds.get(relation, "person")))
    current = [
        GraphEdge(
            uuid5(SCOPE.lane_id, "".join(edge)), nodes[edge[0]].id, edge[0], edge[1],
            nodes[edge[2]].id, edge[2], since, since,
        )
        for edge in edges
    ]  # fmt: skip
    return list(nodes.values()), current


def said(text: str, **more: object) -> Fact:
    return replace(Fact(text, Source(0, 0)), **more)  # type: ignore[arg-type]


def planned(
    facts: Sequence[Fact],
    edges: Sequence[tuple[int, Edge]],
    stored: tuple[list[Node], list[GraphEdge]] = ([], []),
    *,
    ended: Sequence[tuple[int, int]] = (),
    at: datetime = JUNE,
    types: GraphTypes | None = None,
    nodes: NodeSet | None = None,
    memories: Sequence[FactMemory] = (),
) -> GraphPlan:
    """The plan for edges `(fact, edge)`; `ended`: (position of a current edge, fact)."""
    types = types or GraphTypes()
    kinds = {"lives_in": "place", "works_at": "organization", "employs": "person"}
    answer = GraphChanges(
        tuple(
            Relation(
                Entity(source, "organization" if relation == "employs" else "person"), relation,
                Entity(destination, kinds.get(relation, "person")), fact,
            )
            for fact, (source, relation, destination) in edges
        ),
        endings=tuple(EdgeEnding(stored[1][place].id, fact) for place, fact in ended),
    )  # fmt: skip
    return plan_changes(
        answer,
        facts,
        [FactSource(EVENT, 1, at)] * len(facts),
        memories,
        nodes=nodes or NodeSet(SCOPE, stored[0], types.entities),
        current=stored[1],
        types=types,
    )


def lines(plan: GraphPlan) -> list[str]:
    return [f"{x.outcome} {x.source} {x.relation} {x.destination}" for x in plan.lines]


def test_a_new_residence_ends_the_former_one_at_the_time_of_the_fact():
    plan = planned(
        [said("Maya has lived in Rome since May 2026.", valid_from=MAY)],
        [(0, ("Maya", "resides_in", "Rome"))],
        known(("Maya", "lives_in", "Paris")),
    )
    assert lines(plan) == ["INVALIDATE Maya lives_in Paris", "ADD Maya lives_in Rome"]
    assert plan.lines[0].reason == REPLACED
    assert [(edge.valid_to, edge.fact) for edge in plan.ended] == [(MAY, 0)]
    assert [(edge.relation, edge.valid_from) for edge in plan.edges] == [("lives_in", MAY)]


def test_a_relation_of_a_protected_memory_is_not_ended():
    nodes, current = known(("Maya", "lives_in", "Paris"))
    protected = [replace(edge, protected=True) for edge in current]
    plan = planned(
        [said("Maya has lived in Rome since May 2026.", valid_from=MAY)],
        [(0, ("Maya", "lives_in", "Rome"))],
        (nodes, protected),
        ended=[(0, 0)],
    )
    assert plan.ended == []
    assert lines(plan)[0] == "NOOP Maya lives_in Paris"
    assert plan.lines[0].reason == PROTECTED
    assert [(edge.relation, edge.valid_to) for edge in plan.edges] == [("lives_in", None)]
    taken_back = planned(
        [said("Maya no longer lives in Paris.")], [], (nodes, protected), ended=[(0, 0)]
    )
    assert taken_back.ended == []
    earlier = planned(
        [said("Maya has lived in Paris since 2019.", valid_from=datetime(2019, 1, 1, tzinfo=UTC))],
        [(0, ("Maya", "lives_in", "Paris"))],
        (nodes, protected),
    )
    assert (earlier.ended, earlier.edges) == ([], ())


def test_a_former_residence_that_is_said_late_ends_nothing():
    earlier = datetime(2019, 1, 1, tzinfo=UTC)
    plan = planned(
        [said("Maya lived in Rome in 2019.", valid_from=earlier)],
        [(0, ("Maya", "lives_in", "Rome"))],
        known(("Maya", "lives_in", "Paris")),
    )
    assert plan.ended == []
    assert [(edge.valid_from, edge.valid_to) for edge in plan.edges] == [(earlier, MARCH)]


@pytest.mark.parametrize(
    ("text", "valid_from", "until"),
    [
        ("Maya worked at Bosch from 2010 to 2014.", datetime(2010, 1, 1, tzinfo=UTC), 2015),
        ("Maya used to work at Bosch.", None, 2026),
    ],
)
def test_an_edge_of_the_past_has_ended_and_ends_nothing(
    text: str, valid_from: datetime | None, until: int
):
    plan = planned(
        [said(text, valid_from=valid_from, subject="Maya", attribute="employer")],
        [(0, ("Maya", "works_at", "Bosch"))],
        known(("Maya", "works_at", "Siemens")),
        ended=[(0, 0)],
    )
    assert plan.ended == []
    assert lines(plan) == ["ADD Maya works_at Bosch", "NOOP Maya works_at Siemens"]
    [edge] = plan.edges
    assert edge.valid_to is not None
    assert edge.valid_to.year == until


def test_an_edge_that_is_current_is_no_news():
    stored = known(("Maya", "lives_in", "Paris"))
    plan = planned([said("Maya lives in Paris.")], [(0, ("maya", "lives_in", "PARIS"))], stored)
    assert lines(plan) == ["NOOP Maya lives_in Paris"]
    assert (plan.edges, plan.ended) == ((), [])


def test_an_edge_that_began_earlier_than_known_gets_that_time():
    since = datetime(2019, 1, 1, tzinfo=UTC)
    plan = planned(
        [said("Maya has lived in Paris since 2019.", valid_from=since)],
        [(0, ("Maya", "lives_in", "Paris"))],
        known(("Maya", "lives_in", "Paris")),
    )
    assert lines(plan) == ["UPDATE Maya lives_in Paris"]
    assert [edge.valid_to for edge in plan.ended] == [None]
    assert [edge.valid_from for edge in plan.edges] == [since]


@pytest.mark.parametrize(
    ("text", "edge"),
    [
        ("Maya also works at Bosch.", ("Maya", "works_at", "Bosch")),
        ("Maya lives in a small flat.", ("Maya", "lives_in", "small flat")),
        ("Maya has a friend named Ines.", ("Maya", "has_friend", "Ines")),
        ("Maya is married.", ("Maya", "has_status", "married")),
    ],
)
def test_what_can_both_be_true_ends_nothing(text: str, edge: Edge):
    stored = known(
        ("Maya", "works_at", "Siemens"),
        ("Maya", "lives_in", "Paris"),
        ("Maya", "has_friend", "Kim"),
        ("Maya", "married_to", "Karl"),
    )
    plan = planned([said(text)], [(0, edge)], stored)
    assert lines(plan) == [f"ADD {' '.join(edge)}"]


def test_a_plan_ends_nothing():
    plan = planned(
        [said("Maya will live in Rome in 2027.", kind=FactKind.PLAN)],
        [(0, ("Maya", "lives_in", "Rome"))],
        known(("Maya", "lives_in", "Paris")),
    )
    assert lines(plan) == ["ADD Maya plans_lives_in Rome"]


def test_a_marriage_ends_the_former_ones_of_both():
    stored = known(("Maya", "married_to", "Karl"), ("Noor", "engaged_to", "Jonas"))
    plan = planned([said("Jonas married Maya.")], [(0, ("Jonas", "wife_of", "Maya"))], stored)
    assert sorted(lines(plan)) == [
        "ADD Jonas married_to Maya",
        "INVALIDATE Maya married_to Karl",
        "INVALIDATE Noor engaged_to Jonas",
    ]


def test_a_divorce_ends_a_marriage():
    stored = known(("Karl", "married_to", "Maya"), ("Maya", "lives_in", "Paris"))
    edge = ("Maya", "has_status", "divorced")
    plan = planned([said("Maya is divorced.")], [(0, edge)], stored)
    assert lines(plan) == ["INVALIDATE Karl married_to Maya", "ADD Maya has_status divorced"]


def test_a_relation_said_from_the_other_side_is_the_same():
    stored = known(("Anna", "works_at", "Siemens"), ("Maya", "married_to", "Karl"))
    facts = [said("Anna is employed by Siemens."), said("Karl is married to Maya.")]
    edges = [(0, ("Siemens", "employs", "Anna")), (1, ("Karl", "husband_of", "Maya"))]
    assert lines(planned(facts, edges, stored)) == [
        "NOOP Anna works_at Siemens",
        "NOOP Maya married_to Karl",
    ]


TAKEN = [
    ("Maya no longer works at Siemens.", 1, True),
    ("Maya quit their job.", 1, True),
    ("Maya sold the Tesla.", 2, True),
    ("Maya met Karl in Paris.", 0, False),
    ("Maya does not like Rome.", 0, False),
    ("Maya likes tea.", 1, False),
]


@pytest.mark.parametrize(("text", "place", "ends"), TAKEN)
def test_an_edge_ends_only_by_a_fact_that_takes_it_back(text: str, place: int, ends: bool):
    stored = known(
        ("Maya", "lives_in", "Paris"), ("Maya", "works_at", "Siemens"), ("Maya", "owns", "Tesla")
    )
    plan = planned([said(text)], [], stored, ended=[(place, 0)])
    edge = stored[1][place]
    outcome, reason = ("INVALIDATE", TAKEN_BACK) if ends else ("NOOP", KEPT)
    assert lines(plan) == [f"{outcome} Maya {edge.relation} {edge.destination}"]
    assert plan.lines[0].reason == reason
    assert len(plan.ended) == ends


ALSO = said("Maya also works at Acme.", subject="Maya", attribute="employer")
PLANNED = said("Maya plans to live in Rome.", subject="Maya", attribute="residence",
               kind=FactKind.PLAN)  # fmt: skip
FORMERLY = said("Maya lived in Rome in 2019.", subject="Maya", attribute="residence",
                valid_from=datetime(2019, 1, 1, tzinfo=UTC))  # fmt: skip
STILL = said("Maya still lives in Ulm.", subject="Maya", attribute="residence")


@pytest.mark.parametrize(
    ("fact", "stated", "current", "left"),
    [
        (ALSO, [("Maya", "works_at", "Acme")], [("Maya", "works_at", "Initech")], [0]),
        (PLANNED, [("Maya", "lives_in", "Rome")], [("Maya", "lives_in", "Ulm")], [0]),
        (FORMERLY, [("Maya", "lives_in", "Rome")], [("Maya", "lives_in", "Ulm")], [0]),
        (STILL, [("Maya", "lives_in", "Ulm")], [("Maya", "lives_in", "Ulm")], [0]),
        (
            said("Maya no longer works at Initech."),
            [],
            [("Maya", "works_at", "Initech"), ("Maya", "works_as", "nurse")],
            [1],
        ),
        (
            said("Maya quit her job at Stadtwerke Ulm."),
            [],
            [("Maya", "works_at", "Stadtwerke Ulm"), ("Maya", "lives_in", "Ulm")],
            [1],
        ),
        (
            said("Maya is not allergic to peanuts."),
            [],
            [("Maya", "allergic_to", "peanuts"), ("Maya", "allergic_to", "pollen")],
            [1],
        ),
        (
            said("Maya hates coffee now."),
            [("Maya", "dislikes", "coffee")],
            [("Maya", "likes", "coffee"), ("Maya", "likes", "tea"), ("Maya", "dislikes", "rain")],
            [1, 2],
        ),
        (
            said("Maya does not work at Initech any more, she likes Initech."),
            [],
            [("Maya", "works_at", "Initech"), ("Maya", "owns", "Initech")],
            [1],
        ),
    ],
)
def test_a_model_that_ends_all_edges_ends_only_those_that_the_fact_does(
    fact: Fact, stated: Sequence[Edge], current: Sequence[Edge], left: Sequence[int]
):
    stored = known(*current)
    plan = planned(
        [fact], [(0, edge) for edge in stated], stored,
        ended=[(place, 0) for place in range(len(current))],
    )  # fmt: skip
    ended = {edge.id for edge in plan.ended}
    assert [place for place, edge in enumerate(stored[1]) if edge.id not in ended] == left


def test_a_value_that_the_fact_does_not_name_ends_nothing():
    stored = known(("Maya", "lives_in", "Ulm"), ("Maya", "named", "Maya Lopez"))
    edges = [(0, ("Maya", "lives_in", "Zorro")), (0, ("Maya", "named", "Zorro"))]
    plan = planned([said("Maya has a cat.")], edges, stored)
    assert plan.ended == []
    assert lines(plan) == ["ADD Maya lives_in Zorro"]


def test_a_value_of_the_attribute_of_the_fact_ends_the_former_one_in_other_words():
    fact = said("Maya 住在杭州。", subject="Maya", attribute="residence")
    plan = planned(
        [fact], [(0, ("Maya", "lives_in", "Hangzhou"))], known(("Maya", "lives_in", "Ulm"))
    )
    assert lines(plan) == ["INVALIDATE Maya lives_in Ulm", "ADD Maya lives_in Hangzhou"]


def test_a_fact_does_not_begin_what_it_ends():
    edges = [(0, ("Maya", "lives_in", name)) for name in ("Ulm", "Rome", "Ulm")]
    plan = planned([said("Maya moved to Rome.")], edges, known(("Maya", "lives_in", "Ulm")))
    assert [edge.destination_id for edge in plan.edges] == [node("Rome").id]


def test_a_relation_of_a_thing_with_itself_is_left_out():
    edges = [(0, ("Maya", "has_cousin", "Maya")), (0, ("I", "has_brother", "User")),
             (0, ("Maya", "named", "Maya"))]  # fmt: skip
    plan = planned([said("Maya and User are here.")], edges)
    assert (plan.nodes, plan.edges, plan.lines) == ([], (), [])


def test_another_type_does_not_make_another_end_of_the_same_relation():
    stored = known(("Maya", "lives_in", "Ulm"))
    answer = Relation(Entity("Maya", "person"), "lives_in", Entity("Ulm", "person"), 0)
    fact = said("Maya lives in Ulm.")
    plan = plan_changes(
        GraphChanges((answer,)), [fact], [FactSource(EVENT, 1, JUNE)],
        nodes=NodeSet(SCOPE, stored[0]), current=stored[1], types=GraphTypes(),
    )  # fmt: skip
    assert lines(plan) == ["NOOP Maya lives_in Ulm"]


def test_a_value_taken_back_ends_its_edge_even_if_the_model_forgets_it():
    stored = known(("Maya", "works_at", "Siemens"), ("Maya", "lives_in", "Paris"))
    fact = said("Maya no longer works at Siemens.", subject="Maya", attribute="employer")
    assert lines(planned([fact], [], stored)) == ["INVALIDATE Maya works_at Siemens"]


def test_of_two_residences_in_one_batch_the_later_one_stays():
    facts = [said("Maya lives in Rome.", valid_from=MAY), said("Maya moved to Oslo.")]
    edges = [(0, ("Maya", "lives_in", "Rome")), (1, ("Maya", "lives_in", "Oslo"))]
    plan = planned(facts, edges)
    assert [(edge.valid_from, edge.valid_to) for edge in plan.edges] == [(MAY, JUNE), (JUNE, None)]
    assert lines(plan) == [
        "ADD Maya lives_in Rome", "INVALIDATE Maya lives_in Rome", "ADD Maya lives_in Oslo",
    ]  # fmt: skip


@pytest.mark.parametrize(("added", "ends"), [(True, True), (False, False)])
def test_a_fact_that_was_added_ends_the_value_before_it_and_a_compared_one_only_its_own(
    added: bool, ends: bool
):
    nodes, [edge] = known(("Maya", "lives_in", "Paris"))
    fact = said("Maya lives in Rome.", subject="Maya", attribute="residence")
    current = replace(edge, memory_id=UUID(int=8), slot=fact.slot)
    memory = FactMemory(UUID(int=9), (fact.text,), added=added)
    plan = planned(
        [fact], [(0, ("Maya", "lives_in", "Rome"))], (nodes, [current]), memories=[memory]
    )
    assert [each.id for each in plan.ended] == ([edge.id] if ends else [])
    assert [each.valid_to for each in plan.edges] == [None]


@pytest.mark.parametrize("states", [True, False])
def test_a_relation_of_a_retired_memory_moves_to_the_one_that_states_it(states: bool):
    nodes, [edge] = known(("Maya", "lives_in", "Paris"))
    fact = said("Maya lives in Paris in a flat.", subject="Maya", attribute="residence")
    current = replace(edge, memory_id=UUID(int=8), slot=fact.slot)
    memory = FactMemory(UUID(int=9), (fact.text,), retired=(UUID(int=8),))
    stated = [(0, ("Maya", "lives_in", "Paris"))] if states else []
    plan = planned([fact], stated, (nodes, [current]), memories=[memory])
    assert [(each.id, each.valid_to) for each in plan.ended] == [(edge.id, None)]
    [moved] = plan.edges
    assert (moved.source_id, moved.relation, moved.destination_id) == (
        edge.source_id,
        edge.relation,
        edge.destination_id,
    )
    assert (moved.valid_from, moved.valid_to, moved.memory_id) == (MARCH, None, None)
    assert "UPDATE Maya lives_in Paris" in lines(plan)


def test_a_past_value_that_was_added_ends_when_the_current_one_began():
    nodes, [edge] = known(("Maya", "lives_in", "Paris"), since=MAY)
    fact = said(
        "Maya lived in Rome in March 2026.",
        subject="Maya", attribute="residence", valid_from=MARCH,
    )  # fmt: skip
    current = replace(edge, memory_id=UUID(int=8), slot=fact.slot)
    memory = FactMemory(UUID(int=9), (fact.text,), added=True)
    plan = planned(
        [fact], [(0, ("Maya", "lives_in", "Rome"))], (nodes, [current]), memories=[memory]
    )
    assert plan.ended == []
    assert [(each.valid_from, each.valid_to) for each in plan.edges] == [(MARCH, MAY)]


def test_a_relation_of_the_project_keeps_its_name_and_direction():
    types = GraphTypes(relations={"employs": "who pays whom"})
    plan = planned([said("Siemens employs Anna.")], [(0, ("Siemens", "employs", "Anna"))],
                   types=types)  # fmt: skip
    assert lines(plan) == ["ADD Siemens employs Anna"]


# ── identity ─────────────────────────────────────────────────────────────────────────────────────


def test_the_same_name_with_another_role_is_another_person():
    colleague = [(0, ("User", "has_colleague", "Sam")), (0, ("Sam", "lives_in", "Oslo"))]
    brother = [(1, ("User", "has_brother", "Sam")), (1, ("Sam", "lives_in", "Rome"))]
    facts = [said("User's colleague Sam lives in Oslo."), said("User's brother Sam lives in Rome.")]
    plan = planned(facts, colleague + brother)
    sams = [n for n in plan.nodes if n.name == "Sam"]
    assert [(n.key, n.qualifier) for n in sams] == [
        ("sam", "colleague"), ("sam (brother)", "brother"),
    ]  # fmt: skip
    assert all(line.outcome == "ADD" for line in plan.lines)


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [("friend", "colleague", 1), ("girlfriend", "wife", 1), ("brother", "uncle", 2)],
)
def test_one_person_can_have_some_roles_and_not_others(first: str, second: str, count: int):
    edges = [(n, ("User", f"has_{role}", "Sam")) for n, role in enumerate((first, second))]
    plan = planned([said(f"User's {first} is Sam."), said(f"User's {second} is Sam.")], edges)
    assert len([n for n in plan.nodes if n.name == "Sam"]) == count


def test_a_name_without_a_role_means_the_one_mentioned_last():
    stored = [node("Sam", qualifier="colleague"), node("Sam", key="sam (brother)",
                                                       qualifier="brother")]  # fmt: skip
    plan = planned([said("Sam lives in Oslo.")], [(0, ("Sam", "lives_in", "Oslo"))], (stored, []))
    assert plan.edges[0].source_id == stored[1].id


def test_a_person_and_a_place_of_one_name_are_two():
    stored = known(("Maya", "lives_in", "Paris"))
    edge = ("User", "has_friend", "Paris")
    plan = planned([said("User has a friend named Paris.")], [(0, edge)], stored)
    assert [n.key for n in plan.nodes] == ["user", "paris (friend)"]


def test_words_for_the_speaker_are_one_node():
    facts = [said("User lives in Rome."), said("I live in Rome.", speaker="Maya")]
    edges = [(0, ("me", "lives_in", "Rome")), (1, ("User", "lives_in", "Rome"))]
    plan = planned(facts, edges)
    assert lines(plan) == ["ADD User lives_in Rome", "ADD Maya lives_in Rome"]


def test_another_name_of_a_node_is_merged_into_it():
    stored = known(("User", "lives_in", "Paris"))
    plan = planned(
        [said("User's name is Nadia."), said("Nadia lives in Rome.")],
        [(0, ("User", "named", "Nadia")), (1, ("Nadia", "lives_in", "Rome"))],
        stored,
    )
    assert [merge.into for merge in plan.merges] == [stored[0][0].id]
    assert "INVALIDATE User lives_in Paris" in lines(plan)


def test_a_similar_name_is_a_node_merged_into_the_other():
    paris = node("City of Paris", "place")
    nodes = NodeSet(SCOPE, [paris], similar={"paris": paris})
    plan = planned([said("Maya lives in Paris.")], [(0, ("Maya", "lives_in", "Paris"))],
                   nodes=nodes)  # fmt: skip
    assert [(merge.node_id, merge.into) for merge in plan.merges] == [
        (node_id(SCOPE, "paris"), paris.id)
    ]


@pytest.mark.parametrize(
    ("name", "other", "kind", "may"),
    [
        ("new york", "new york city", "place", True),
        ("pier 3", "pier 4", "place", False),
        ("pier", "pier 4", "place", False),
        ("sara", "sarah", "person", False),
        ("bank of america", "bank of africa", "organization", False),
        ("lopez", "maya lopez", "person", False),
        ("maya", "maya lopez", "person", True),
        ("apple", "apple store", "food", False),
        ("york", "new york", "place", False),
        ("vegan pizza", "non vegan pizza", "food", False),
        ("lake garda", "garda lake", "place", True),
        ("kim lee", "lee kim", "person", False),
        ("dr anna schmidt", "anna schmidt", "person", True),
        ("sam junior", "sam", "person", False),
    ],
)
def test_look_alikes_are_not_compared(name: str, other: str, kind: str, may: bool):
    stored = node(other, "organization" if kind == "food" else kind)
    assert may_be_same(name, stored, kind) is may


def test_roles_beside_different_people_are_one_person():
    stored: list[Node] = []
    for text, edge in (
        ("Vera is the sister of Pavel.", ("Pavel", "has_sister", "Vera")),
        ("Ana is married to Vera.", ("Ana", "married_to", "Vera")),
        ("Liam reports to Vera.", ("Liam", "reports_to", "Vera")),
    ):
        plan = planned([said(text)], [(0, edge)], (stored, []))
        stored = [*{each.id: each for each in (*stored, *plan.nodes)}.values()]
    assert [each.name for each in stored].count("Vera") == 1
