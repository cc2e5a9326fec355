"""Edges that `local/rules` reads in facts, and current edges that these facts take back.

The plan of the graph ends those that they exclude.
"""

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.facts import Fact
from pipeline.domain.graph.values import (
    EdgeEnding,
    GraphChanges,
    Relation,
    RelationRequest,
    StoredRelation,
)
from pipeline.domain.messages import Source


async def relate(*facts: str) -> GraphChanges:
    stated = [Fact(text, Source(0, at)) for at, text in enumerate(facts)]
    return (await RulesModel().relate(RelationRequest(stated))).value


def drawn(relation: Relation) -> str:
    source, far = relation.source, relation.destination
    return f"{source.name}:{source.kind} -{relation.relation}-> {far.name}:{far.kind}"


EDGES = [
    ("User's name is Nadia", ["User:person -named-> Nadia:name"]),
    ("User lives in Turin (moved on 2026-03-02)", ["User:person -lives_in-> Turin:place"]),
    ("User works as a nurse at Charité",
     ["User:person -works_as-> nurse:occupation", "User:person -works_at-> Charité:organization"]),
    ("User loves hiking", ["User:person -likes-> hiking:interest"]),
    ("User hates coriander", ["User:person -dislikes-> coriander:food"]),
    ("User is allergic to peanuts", ["User:person -allergic_to-> peanuts:food"]),
    ("User has a dog named Rollo",
     ["User:person -owns-> Rollo:animal", "Rollo:animal -is_a-> dog:species"]),
    ("User drives a Tesla", ["User:person -drives-> Tesla:vehicle"]),
    ("User's sister is Ines", ["User:person -has_sister-> Ines:person"]),
    ("Ines lives in Porto", ["Ines:person -lives_in-> Porto:place"]),
    ("User is married to Karl (since 2026-03)", ["User:person -married_to-> Karl:person"]),
    ("User speaks French", ["User:person -speaks-> French:language"]),
    ("User is learning Italian", ["User:person -learns-> Italian:language"]),
    ("User plans to fly to Lisbon on 2026-03-13", ["User:person -plans_to_visit-> Lisbon:place"]),
    ("User has asthma", ["User:person -has_condition-> asthma:condition"]),
    ("User's favourite colour is teal", ["User:person -favourite_colour-> teal:colour"]),
    ("User is vegan", ["User:person -follows_diet-> vegan:diet"]),
    ("User no longer works at Siemens", []),
    ("User sold the Tesla", []),
    ("User asks to forget: likes jazz", []),
    ("The weather was odd", []),
]  # fmt: skip


@pytest.mark.parametrize(("fact", "edges"), EDGES)
async def test_a_fact_draws_its_edges(fact: str, edges: list[str]) -> None:
    assert [drawn(relation) for relation in (await relate(fact)).relations] == edges


# A fact, a current edge, and if the fact takes it back.
ENDINGS = [
    ("User no longer lives in Oslo", ("User", "lives_in", "Oslo"), True),
    ("User no longer lives in Oslo", ("Ines", "lives_in", "Oslo"), False),
    ("User left Oslo in 2026-02", ("User", "lives_in", "Oslo"), True),
    ("User quit their job", ("User", "works_at", "Charité"), True),
    ("User quit their job", ("Ines", "works_at", "Charité"), False),
    ("User no longer works at Charité", ("User", "works_at", "Charité"), True),
    ("User no longer works at Charité", ("User", "works_at", "Siemens"), False),
    ("User no longer likes jazz", ("User", "likes", "jazz"), True),
    ("User hates jazz", ("User", "likes", "jazz"), True),
    ("User likes opera", ("User", "likes", "jazz"), False),
    ("User sold the Tesla", ("User", "drives", "Tesla"), True),
    ("User sold the Tesla", ("User", "owns", "red Tesla"), True),
    ("User sold the Tesla", ("User", "owns", "piano"), False),
    ("User's dog Rollo died on 2026-03-08", ("User", "owns", "Rollo"), True),
    ("User's dog Rollo died on 2026-03-08", ("User", "owns", "Pip"), False),
    ("User is no longer vegetarian", ("User", "follows_diet", "vegetarian"), True),
    ("User cancelled their trip to Oslo", ("User", "plans_to_visit", "Oslo"), True),
    ("User cancelled their trip to Oslo", ("User", "plans_to_visit", "Rome"), False),
    ("User speaks French", ("User", "speaks", "German"), False),
]


@pytest.mark.parametrize(("fact", "edge", "ends"), ENDINGS)
async def test_a_fact_ends_the_edges_that_it_takes_back(
    fact: str, edge: tuple[str, str, str], ends: bool
) -> None:
    current = [StoredRelation(UUID(int=1), *edge)]
    changes = (
        await RulesModel().relate(RelationRequest([Fact(fact, Source(0, 0))], current))
    ).value
    assert changes.endings == ((EdgeEnding(UUID(int=1), 0),) if ends else ())


async def test_no_longer_liking_draws_no_positive_edge() -> None:
    changes = await relate("User no longer likes jazz")
    assert all(relation.relation != "likes" for relation in changes.relations)


async def test_a_relative_known_by_name_is_one_person() -> None:
    ines = StoredRelation(UUID(int=0), "User", "has_sister", "Ines")
    eva = StoredRelation(UUID(int=1), "User", "has_sister", "Eva")
    fact = Fact("User's sister lives in Braga", Source(0, 0))
    for current, name in (([ines], "Ines"), ([ines, eva], "User's sister")):
        changes = (await RulesModel().relate(RelationRequest([fact], current))).value
        assert [drawn(edge) for edge in changes.relations] == [
            f"{name}:person -lives_in-> Braga:place"
        ]


FACTS = st.one_of(
    st.text(max_size=80),
    st.sampled_from(["User likes .", "User lives in Oslo", "User plans to visit with Ines",
                     "User sold the", "User's sister lives in Oslo", "User asks to forget: x"]),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(FACTS, max_size=4))
async def test_any_facts_are_read_without_raising(facts: list[str]) -> None:
    changes = await relate(*facts)
    assert changes == await relate(*facts)
    assert all(0 <= relation.fact < len(facts) for relation in changes.relations)
    assert all(r.source.name and r.destination.name for r in changes.relations)
