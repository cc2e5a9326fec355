"""Edges that `local/rules` reads in facts, and current edges that these facts end."""

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.facts import Fact
from pipeline.domain.graph import (
    EdgeEnding,
    GraphChanges,
    Relation,
    RelationRequest,
    StoredRelation,
)
from pipeline.domain.messages import Source


async def relate(*facts: str, current: tuple[tuple[str, str, str], ...] = ()) -> GraphChanges:
    edges = [StoredRelation(UUID(int=at), *edge) for at, edge in enumerate(current)]
    stated = [Fact(text, Source(0, at)) for at, text in enumerate(facts)]
    return (await RulesModel().relate(RelationRequest(stated, edges))).value


def ended(changes: GraphChanges) -> tuple[UUID, ...]:
    return tuple(ending.relation_id for ending in changes.endings)


def drawn(relation: Relation) -> str:
    source, far = relation.source, relation.destination
    return f"{source.name}:{source.kind} -{relation.relation}-> {far.name}:{far.kind}"


EDGES = [
    ("User's name is Nadia", ["User:person -named-> Nadia:name"]),
    ("User lives in Turin (moved on 2026-03-02)", ["User:person -lives_in-> Turin:place"]),
    ("User works as a nurse at Charité",
     ["User:person -works_as-> nurse:occupation", "User:person -works_at-> Charité:organization"]),
    ("User loves hiking", ["User:person -likes-> hiking:activity"]),
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


ENDINGS = [
    ("User lives in Turin", ("User", "lives_in", "Oslo"), True),
    ("User lives in a small flat", ("User", "lives_in", "Oslo"), False),
    ("User works at home", ("User", "works_at", "Charité"), False),
    ("User lives in Turin", ("User", "lives_in", "turin"), False),
    ("User lives in Turin", ("Ines", "lives_in", "Oslo"), False),
    ("User works as a chef at Bistro", ("User", "works_at", "Charité"), True),
    ("User quit their job", ("User", "works_at", "Charité"), True),
    ("User no longer likes jazz", ("User", "likes", "jazz"), True),
    ("User hates jazz", ("User", "likes", "jazz"), True),
    ("User likes opera", ("User", "likes", "jazz"), False),
    ("User sold the Tesla", ("User", "drives", "Tesla"), True),
    ("User sold the Tesla", ("User", "owns", "piano"), False),
    ("User's dog Rollo died on 2026-03-08", ("User", "owns", "Rollo"), True),
    ("User eats meat again", ("User", "follows_diet", "vegetarian"), True),
    ("User cancelled their trip to Oslo", ("User", "plans_to_visit", "Oslo"), True),
    ("User asks to forget: likes jazz", ("User", "likes", "jazz"), True),
    ("User asks to forget: Ines lives in Oslo", ("User", "lives_in", "Oslo"), False),
    ("User speaks French", ("User", "speaks", "German"), False),
]


@pytest.mark.parametrize(("fact", "edge", "ends"), ENDINGS)
async def test_a_fact_ends_the_edges_it_excludes(
    fact: str, edge: tuple[str, str, str], ends: bool
) -> None:
    changes = await relate(fact, current=(edge,))
    assert changes.endings == ((EdgeEnding(UUID(int=0), 0),) if ends else ())


async def test_no_longer_liking_draws_no_positive_edge() -> None:
    changes = await relate("User no longer likes jazz")
    assert all(relation.relation != "likes" for relation in changes.relations)


async def test_a_relative_known_by_name_is_one_person() -> None:
    changes = await relate(
        "User's sister lives in Braga",
        current=(("User", "has_sister", "Ines"), ("Ines", "lives_in", "Porto")),
    )
    assert ended(changes) == (UUID(int=1),)
    assert [drawn(edge) for edge in changes.relations] == ["Ines:person -lives_in-> Braga:place"]


WORDS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["User", "lives_in", "has_", "has_sister", "likes", "Oslo", "plans_to_visit"]),
)
FACTS = st.one_of(
    st.text(max_size=80),
    st.sampled_from(["User likes .", "User lives in Oslo", "User plans to visit with Ines",
                     "User sold the", "User's sister lives in Oslo", "User asks to forget: x"]),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(FACTS, max_size=4), st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=4))
async def test_any_facts_and_edges_are_read_without_raising(
    facts: list[str], current: list[tuple[str, str, str]]
) -> None:
    changes = await relate(*facts, current=tuple(current))
    assert changes == await relate(*facts, current=tuple(current))
    assert all(0 <= relation.fact < len(facts) for relation in changes.relations)
    assert all(r.source.name and r.destination.name for r in changes.relations)
    assert set(ended(changes)) <= {UUID(int=at) for at in range(len(current))}
    assert len(set(ended(changes))) == len(ended(changes))
