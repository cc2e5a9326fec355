"""Pinned and edited memories, and deleted texts: what a person decides, no model changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.graph.values import EdgeEnding, GraphChanges, RelationRequest
from pipeline.domain.usage import Answer
from pipeline.ports import ExtractionRequest
from tests.support.api_service import MAYA, Service, error_of, serving
from tests.support.engine import Engine


class Overwriting(RulesModel):
    """Model that takes each message as a fact, and decides the same on every memory it sees."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        return Answer(tuple(Fact(m.message.content, m.source) for m in request.messages))

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        rows = [
            Decision(place, self.outcome, "So it is.", fact.text, neighbour.memory_id)
            for place, fact in enumerate(facts)
            for neighbour in neighbours
        ]
        return Answer(tuple(rows) or (Decision(0, Outcome.ADD, "New.", facts[0].text),))


class EndingAll(RulesModel):
    """Rules, and a first fact that ends every current edge."""

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        stated = (await super().relate(request)).value
        endings = tuple(EdgeEnding(edge.relation_id, 0) for edge in request.current)
        return Answer(replace(stated, endings=endings))


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as service:
        yield service


async def put(service: Service, memory_id: str, **body: object) -> dict[str, Any]:
    answer = await service.client.put(f"/v1/memories/{memory_id}/", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def get(service: Service, memory_id: str) -> dict[str, Any]:
    """The memory, without the suggestion about it."""
    row = dict((await service.client.get(f"/v1/memories/{memory_id}/")).json())
    return row | {"suggestion_id": None}


async def only(service: Service, text: str) -> str:
    """Add this text; return the id of the only memory."""
    await service.add(text)
    [memory] = await service.listed()
    return str(memory["id"])


async def suggestions(service: Service) -> list[dict[str, Any]]:
    return list((await service.client.get("/v1/suggestions/")).json()["results"])


CASES = [
    (Outcome.UPDATE, "I live in Berlin with Tom.", "User lives in Berlin with Tom and a cat"),
    (Outcome.DELETE, "I live in Berlin.", "I no longer live in Berlin."),
]


@pytest.mark.parametrize(("outcome", "old", "news"), CASES)
async def test_a_change_of_a_pinned_memory_becomes_a_suggestion(
    service: Service, outcome: Outcome, old: str, news: str
) -> None:
    memory_id = await only(service, old)
    pinned = await put(service, memory_id, pinned=True)
    assert (pinned["pinned"], pinned["version"]) == (True, 2)
    service.engine.with_model(Overwriting(outcome))
    event = await service.event(await service.add(news))
    assert await get(service, memory_id) == pinned
    [line] = event["results"]
    assert (line["event"], line["memory"]) == ("ADD", news)
    [suggestion] = await suggestions(service)
    assert line["suggestion_id"] == suggestion["id"]
    assert (suggestion["kind"], suggestion["state"]) == (outcome, "OPEN")
    assert suggestion["reason"] == "It is pinned."
    assert suggestion["targets"] == [{"memory_id": memory_id, "version": 2}]


@pytest.mark.parametrize(("outcome", "old", "news"), CASES)
async def test_a_change_of_an_edited_text_becomes_a_suggestion(
    service: Service, outcome: Outcome, old: str, news: str
) -> None:
    memory_id = await only(service, "I like tea.")
    edited = await put(service, memory_id, text=old)
    assert edited["edited_at"] is not None
    service.engine.with_model(Overwriting(outcome))
    await service.add(news)
    assert await get(service, memory_id) == edited
    [suggestion] = await suggestions(service)
    assert suggestion["reason"] == "A person has edited this memory."


@pytest.mark.parametrize(("outcome", "old", "news"), CASES)
async def test_an_unpinned_memory_changes_again(
    service: Service, outcome: Outcome, old: str, news: str
) -> None:
    memory_id = await only(service, old)
    await put(service, memory_id, pinned=True)
    await put(service, memory_id, pinned=False)
    service.engine.with_model(Overwriting(outcome))
    await service.add(news)
    left = [memory["memory"] for memory in await service.listed()]
    assert old not in left
    assert await suggestions(service) == []


async def test_metadata_of_a_person_do_not_keep_a_model_from_changing_the_text(
    service: Service,
) -> None:
    memory_id = await only(service, "I live in Berlin with Tom.")
    changed = await put(service, memory_id, metadata={"sure": True})
    assert changed["edited_at"] is None
    service.engine.with_model(Overwriting(Outcome.UPDATE))
    await service.add("User lives in Berlin with Tom and a cat")
    assert (await get(service, memory_id))["memory"] == "User lives in Berlin with Tom and a cat"


async def test_a_repeat_does_not_move_the_time_of_a_pinned_memory(service: Service) -> None:
    memory_id = await only(service, "I live in Berlin.")
    pinned = await put(service, memory_id, pinned=True)
    await service.add("I live in Berlin.")
    assert await get(service, memory_id) == pinned


async def test_a_pin_is_in_the_history_and_in_lists_and_searches(service: Service) -> None:
    memory_id = await only(service, "I live in Berlin.")
    await put(service, memory_id, pinned=True)
    history = (await service.client.get(f"/v1/memories/{memory_id}/history/")).json()
    assert history[-1]["reason"] == "Pinned by request."
    [listed] = await service.listed()
    [hit] = await service.search("Berlin")
    assert listed["pinned"] is hit["pinned"] is True


async def test_an_event_before_a_pin_is_not_undone_over_it(service: Service) -> None:
    event_id = await service.add("I live in Berlin.")
    [memory] = await service.listed()
    await put(service, memory["id"], pinned=True)
    refused = await service.client.post(f"/v1/event/{event_id}/undo/", json={})
    assert refused.status_code == 409
    assert "changed since by a person" in error_of(refused)


async def test_a_batch_pins_several_memories(service: Service) -> None:
    await service.add("I live in Berlin.", "I like tea.")
    ids = [memory["id"] for memory in await service.listed()]
    body = {"memories": [{"memory_id": memory_id, "pinned": True} for memory_id in ids]}
    assert (await service.client.put("/v1/batch/", json=body)).status_code == 200
    assert [memory["pinned"] for memory in await service.listed()] == [True] * len(ids)


# ── deleted texts ────────────────────────────────────────────────────────────────────────────────


async def test_an_event_that_was_accepted_before_does_not_learn_a_deleted_text_again(
    service: Service,
) -> None:
    memory_id = await only(service, "I live in Berlin.")
    waiting = await service.client.post(
        "/v3/memories/add/", json={"messages": "I live in Berlin."} | MAYA
    )
    assert (await service.client.delete(f"/v1/memories/{memory_id}/")).status_code == 200
    await service.engine.drain()
    assert await service.listed() == []
    [line] = (await service.event(waiting.json()["event_id"]))["results"]
    assert line["event"] == "NOOP"
    assert line["reason"].endswith("(A person has deleted this text.)")


async def test_a_text_that_is_said_after_its_delete_is_stored(service: Service) -> None:
    memory_id = await only(service, "I live in Berlin.")
    await service.client.delete(f"/v1/memories/{memory_id}/")
    assert await only(service, "I live in Berlin.") != memory_id


async def test_an_undone_delete_forgets_nothing(service: Service) -> None:
    memory_id = await only(service, "I live in Berlin.")
    deleted = await service.client.delete("/v1/memories/", params=MAYA)
    undone = await service.client.post(f"/v1/event/{deleted.json()['event_id']}/undo/", json={})
    assert undone.status_code == 200
    await service.add("I live in Berlin.")
    [memory] = await service.listed()
    assert memory["id"] == memory_id


async def test_a_replay_keeps_the_pin_of_a_memory_that_it_produces_again(service: Service) -> None:
    memory_id = await only(service, "I live in Berlin.")
    await put(service, memory_id, pinned=True)
    begun = (await service.client.post("/v1/replays/", json=MAYA)).json()
    await service.engine.drain()
    switched = await service.client.post(f"/v1/replays/{begun['id']}/switch/", json={})
    assert switched.status_code == 200, switched.text
    [memory] = await service.listed()
    assert (memory["memory"], memory["pinned"]) == ("User lives in Berlin", True)


async def test_a_replay_that_lacks_a_pinned_memory_is_not_switched_on(service: Service) -> None:
    memory_id = await only(service, "I live in Berlin.")
    await put(service, memory_id, pinned=True)
    service.engine.with_model(Overwriting(Outcome.ADD))
    begun = (await service.client.post("/v1/replays/", json=MAYA)).json()
    await service.engine.drain()
    refused = await service.client.post(f"/v1/replays/{begun['id']}/switch/", json={})
    assert refused.status_code == 409
    assert memory_id in error_of(refused)


@pytest.mark.parametrize("change", [{"pinned": True}, {"text": "User lives in Berlin, at last"}])
async def test_the_relation_of_a_protected_memory_is_not_ended_by_a_model(
    service: Service, change: dict[str, Any]
) -> None:
    memory_id = await only(service, "I live in Berlin.")
    await put(service, memory_id, **change)
    service.engine.with_model(EndingAll())
    event = await service.event(await service.add("I moved to Porto."))
    edges = await service.engine.relations("user berlin porto")
    current = {edge.destination for edge in edges if edge.relation == "lives_in"}
    assert "berlin" in {name.lower() for name in current}
    lines = [line for line in event["graph"] if line["target"].lower() == "berlin"]
    assert {line["event"] for line in lines} == {"NOOP"}
    assert "both memories are kept" in lines[0]["reason"]
    await put(service, memory_id, pinned=False)
    [row] = [row for row in await service.listed() if row["id"] == memory_id]
    assert "Berlin" in row["memory"]
