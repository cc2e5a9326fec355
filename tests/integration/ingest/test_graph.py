"""The graph through the pipeline: receipts, times, endings, namesakes, merges, options."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from api.events.responses import event as event_view
from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import AddOptions, Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.graph.values import Entity, GraphChanges, Relation, RelationRequest
from pipeline.domain.usage import Answer
from pipeline.domain.vectors import Vector
from pipeline.events.service import replay_graph
from pipeline.ledger.tables import entities, memories, relations
from tests.support.embedder_hash import HashEmbedder
from tests.support.engine import Engine

Edge = tuple[str, str, str]


@dataclass
class Scripted(RulesModel):
    """Rules that state given edges for a text; the type of an entity by its name."""

    edges: Mapping[str, Sequence[Edge]] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    requests: list[RelationRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        self.requests.append(request)
        stated = [
            Relation(self._entity(source), relation, self._entity(destination), fact)
            for fact, text in enumerate(request.texts)
            for words, edges in self.edges.items()
            if words in text
            for source, relation, destination in edges
        ]
        return Answer(GraphChanges(tuple(stated)))

    def _entity(self, name: str) -> Entity:
        return Entity(name, self.kinds.get(name, "person"))


class Alike(HashEmbedder):
    """Embedder for which all museums are the same."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        same = np.zeros(await self.dimensions(), np.float32)
        same[0] = 1
        vectors = await super().embed(texts)
        return [
            same if "museum" in text else vector
            for text, vector in zip(texts, vectors, strict=True)
        ]


async def lines(engine: Engine, event_id: Any) -> list[str]:
    graph = (await engine.event(event_id)).graph or ()
    return [f"{x.outcome} {x.source} {x.relation} {x.destination}" for x in graph]


async def rows(engine: Engine, table: Any) -> Sequence[Any]:
    query = select(table).where(table.c.lane_id == engine.scope().lane_id)
    async with engine.ledger.engine.connect() as connection:
        return (await connection.execute(query.order_by(table.c.created_at, table.c.id))).all()


async def add(engine: Engine, *texts: str, options: AddOptions | None = None) -> Any:
    event_id = await engine.add(*texts, options=options)
    await engine.drain()
    return event_id


async def test_the_receipt_lists_the_effects_on_the_graph(engine: Engine) -> None:
    first = await add(engine, "I live in Berlin.")
    second = await add(engine, "I moved to Oslo.")
    assert await lines(engine, first) == ["ADD User lives_in Berlin"]
    assert await lines(engine, second) == [
        "INVALIDATE User lives_in Berlin", "ADD User lives_in Oslo",
    ]  # fmt: skip
    berlin, oslo = await rows(engine, relations)
    assert (berlin.ended_by, berlin.valid_to is None, oslo.valid_to) == (second, False, None)
    assert berlin.valid_to == oslo.valid_from
    line = ((await engine.event(second)).graph or ())[1]
    assert (line.relation_id, line.memory_id, line.message_ordinal) == (oslo.id, oslo.memory_id, 0)


# Two statements, and the relations that are current after them.
ENDINGS = [
    ("I live in Oslo.", "I live in Turin.", ["lives_in Turin"]),
    ("I live in Oslo.", "I live in a small flat.", ["lives_in Oslo", "lives_in small flat"]),
    ("I live in Oslo.", "My sister lives in Turin.", ["lives_in Oslo", "lives_in Turin"]),
    ("I like jazz.", "I no longer like jazz.", ["dislikes jazz"]),
    ("I like jazz.", "I hate jazz.", ["dislikes jazz"]),
    ("I like jazz.", "I like opera.", ["likes jazz", "likes opera"]),
    ("I am vegetarian.", "I eat meat again.", ["follows_diet meat"]),
    ("I like jazz.", "Please forget that I like jazz.", []),
    ("I speak German.", "I speak French.", ["speaks French", "speaks German"]),
    ("I work as a nurse at Charité.", "I work as a chef at Bistro.",
     ["works_as chef", "works_at Bistro"]),
    ("I have a dog named Rollo.", "My dog Rollo died yesterday.", ["is_a dog"]),
    ("My husband is Karl.", "My husband is Emil.", ["married_to Emil"]),
    ("My friend is Karl.", "My friend is Emil.", ["has_friend Emil", "has_friend Karl"]),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "current"), ENDINGS)
async def test_a_statement_ends_what_it_excludes_or_takes_back(
    engine: Engine, first: str, second: str, current: list[str]
) -> None:
    await add(engine, first)
    await add(engine, second)
    names = {row.id: row.name for row in await rows(engine, entities)}
    stated = [row for row in await rows(engine, relations) if row.valid_to is None]
    assert sorted(f"{row.relation} {names[row.destination_id]}" for row in stated) == current


@dataclass
class Careless(Scripted):
    """Scripted edges in an answer that has invalid relations too, also after its repair."""

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        answer = await super().relate(request)
        return Answer(dataclasses.replace(answer.value, left_out=("relations.1.fact is 9",) * 7))


async def test_a_graph_with_invalid_relations_is_partial_and_can_be_replayed(
    engine: Engine,
) -> None:
    edges = {"Berlin": [("User", "lives_in", "Berlin")]}
    engine.with_model(Careless(edges, {"Berlin": "place"}))
    event_id = await add(engine, "I live in Berlin.")
    event = await engine.event(event_id)
    assert (event.status, event.graph_status) == ("SUCCEEDED", "PARTIAL")
    assert event.failure_code is None
    assert (event.failure_detail or "").startswith("LLM_BAD_OUTPUT: 7 left out as invalid: ")
    receipt = event_view(event)
    assert (receipt["error"], receipt["graph_detail"]) == (None, event.failure_detail)
    assert await lines(engine, event_id) == ["ADD User lives_in Berlin"]
    engine.with_model(Scripted({**edges, "live": [("User", "visited", "Oslo")]}))
    await replay_graph(
        engine.project.id,
        event_id,
        dead_letters=engine.ledger.dead_letters,
        dispatcher=engine.hints,
    )
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.graph_status, event_view(event)["graph_detail"]) == ("SUCCEEDED", None)
    assert sorted((await lines(engine, event_id))[1:]) == [
        "ADD User visited Oslo", "NOOP User lives_in Berlin",
    ]  # fmt: skip
    assert len(await rows(engine, relations)) == 2


async def test_a_name_that_is_too_long_is_left_out_by_name(engine: Engine) -> None:
    edges = [("User", "lives_in", "Berlin"), ("User", "likes", "x" * 301)]
    engine.with_model(Scripted({"Berlin": edges}, {"Berlin": "place"}))
    event_id = await add(engine, "I live in Berlin.")
    event = await engine.event(event_id)
    assert (event.graph_status, len(event.graph or ())) == ("PARTIAL", 1)
    assert "1 left out as invalid: relations: a name has more" in (event.failure_detail or "")


async def test_an_undo_restores_what_the_event_ended(engine: Engine) -> None:
    await add(engine, "I live in Berlin.")
    second = await add(engine, "I moved to Oslo.")
    await engine.undo(second)
    berlin, oslo = await rows(engine, relations)
    assert (berlin.valid_to, berlin.expired_at, oslo.expired_at is None) == (None, None, False)


async def test_the_same_name_of_two_persons_is_two_nodes(engine: Engine) -> None:
    sam = {
        "colleague": [("User", "has_colleague", "Sam")],
        "brother": [("User", "has_brother", "Sam")],
    }
    engine.with_model(Scripted(sam))
    await add(engine, "My colleague Sam is tall.")
    await add(engine, "My brother is Sam.")
    nodes = [row for row in await rows(engine, entities) if row.name == "Sam"]
    assert sorted((row.name_key, row.qualifier) for row in nodes) == [
        ("sam", "colleague"), ("sam (brother)", "brother"),
    ]  # fmt: skip


async def test_a_similar_name_is_merged_and_a_look_alike_is_not(engine: Engine) -> None:
    edges = {
        "jazz": [("User", "visited", "Harbour Museum")],
        "chess": [("User", "visited", "Harbour Museum Hall")],
        "tea": [("User", "visited", "Harbour Museum 2")],
    }
    kinds = dict.fromkeys(("Harbour Museum", "Harbour Museum Hall", "Harbour Museum 2"), "place")
    engine.with_model(Scripted(edges, kinds))
    engine.services = dataclasses.replace(engine.services, embedder=Alike())
    for text in ("I like jazz.", "I like chess.", "I like tea."):
        await add(engine, text)
    nodes = {row.name: row for row in await rows(engine, entities)}
    hall, museum = nodes["Harbour Museum Hall"], nodes["Harbour Museum"]
    assert (hall.merged_into, hall.root_id) == (museum.id, museum.id)
    assert hall.merge_reason
    assert nodes["Harbour Museum 2"].merged_into is None


async def test_another_name_of_the_user_is_the_user(engine: Engine) -> None:
    await add(engine, "My name is Nadia.")
    await add(engine, "I live in Berlin.")
    engine.with_model(Scripted({"Oslo": [("Nadia", "lives_in", "Oslo")]}, {"Oslo": "place"}))
    event_id = await add(engine, "I moved to Oslo.")
    assert "INVALIDATE User lives_in Berlin" in await lines(engine, event_id)


async def test_mentions_are_counted(engine: Engine) -> None:
    for text in ("I live in Berlin.", "I like jazz.", "I like chess."):
        await add(engine, text)
    nodes = {row.name: row.mentions for row in await rows(engine, entities)}
    assert (nodes["User"], nodes["jazz"]) == (3, 1)


async def test_a_relation_goes_with_its_own_memory(engine: Engine) -> None:
    event_id = await add(engine, "I live in Berlin.", "I like jazz.")
    memory = next(line.memory_id for line in (await engine.event(event_id)).receipt
                  if "Berlin" in line.text)  # fmt: skip
    assert memory is not None
    await engine.ledger.editing.retire(engine.project.id, [memory])
    current = [row.relation for row in await rows(engine, relations) if row.expired_at is None]
    assert current == ["likes"]


async def test_an_add_can_do_without_a_graph(engine: Engine) -> None:
    event_id = await add(engine, "I live in Berlin.", options=AddOptions(graph=False))
    event = await engine.event(event_id)
    assert (event.status, event.graph_status, event.graph) == ("SUCCEEDED", None, [])
    assert await rows(engine, relations) == []


@pytest.mark.parametrize(("stored", "called", "relates"), [(False, None, 0), (False, True, 1)])
async def test_a_project_can_do_without_a_graph(
    engine: Engine, stored: bool, called: bool | None, relates: int
) -> None:
    await engine.ledger.projects.change(engine.project.id, {"enable_graph": stored}, {})
    await add(engine, "I live in Berlin.", options=AddOptions(graph=called))
    assert len(await rows(engine, relations)) == relates


async def test_the_model_is_shown_the_types_of_the_project_and_the_names_in_use(
    engine: Engine,
) -> None:
    types = {"entity_types": {"vessel": "a ship"}, "relation_types": {"employs": "who pays whom"}}
    await engine.ledger.projects.change(engine.project.id, {"graph_types": types}, {})
    edges = [("User", "moors", "Albatross"), ("Siemens", "employs", "User")]
    engine.with_model(model := Scripted({"Berlin": edges}, {"Albatross": "vessel"}))
    for user in ("maya", "noor", "lone"):
        await engine.add("I live in Berlin.", user_id=user)
        await engine.drain()
    assert model.requests[0].types.entities == {"vessel": "a ship"}
    assert [list(request.vocabulary) for request in model.requests] == [
        [],
        [],
        ["employs", "moors"],
    ]
    stored = await rows(engine, relations)
    assert {row.relation for row in stored} == {"moors", "employs"}
    nodes = {row.id: row for row in await rows(engine, entities)}
    employs = next(row for row in stored if row.relation == "employs")
    assert nodes[employs.source_id].name == "Siemens"
    assert {row.kind for row in nodes.values()} >= {"vessel", "person"}


class Hesitant(RulesModel):
    """Rules that also take every other memory to say what a fact says."""

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        made = (await super().decide(facts, neighbours, instructions)).value
        aims = {decision.memory_id for decision in made}
        others = [n.memory_id for n in neighbours if n.memory_id not in aims]
        noops = [Decision(0, Outcome.NOOP, "Known.", memory_id=other) for other in others]
        return Answer((*noops, *made))


async def test_a_relation_is_of_the_memory_that_a_fact_changes(engine: Engine) -> None:
    for text in ("I work at Bosch.", "I like jazz."):
        await add(engine, text)
    engine.with_model(Hesitant())
    await add(engine, "I work at Siemens now.")
    async with engine.ledger.engine.connect() as connection:
        texts = dict((await connection.execute(select(memories.c.id, memories.c.text))).all())
    current = [row for row in await rows(engine, relations) if row.expired_at is None]
    assert {row.relation: texts[row.memory_id] for row in current} == {
        "likes": "User likes jazz",
        "works_at": "User works at Siemens",
    }
