"""Delete of all memories that match: its extent, concurrent events, and its undo."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import StageName
from pipeline.domain.facts import Fact
from pipeline.domain.messages import Message
from pipeline.domain.usage import Answer
from pipeline.erasure import service as erasure
from pipeline.ports import ExtractionRequest
from pipeline.stores import Ledger
from tests.support.api_service import Service, error_of, serving
from tests.support.engine import Engine

ALL = "/v1/memories/"
IDS = ("user_id", "agent_id", "app_id", "run_id")


@pytest.fixture
async def service(engine: Engine):
    async with serving(engine.ledger, sync_wait_s=0.01) as built:
        yield built


OF_ALL = {"OR": [{name: "*"} for name in IDS]}


async def store(service: Service, text: str, **body: Any) -> str:
    """Store a memory with exactly this text; return its id."""
    before = {row["id"] for row in await service.listed(**OF_ALL)}
    await service.add(text, infer=False, **{"user_id": None} | body)
    [new] = {row["id"] for row in await service.listed(**OF_ALL)} - before
    return str(new)


async def texts(service: Service) -> set[str]:
    """Texts of all memories of the project."""
    return {row["memory"] for row in await service.listed(**OF_ALL)}


async def delete(service: Service, query: dict[str, Any] | str) -> dict[str, Any]:
    """Delete with this query; return the event, which must have succeeded."""
    answer = await service.client.delete(ALL, params=query)
    assert answer.status_code == 200, answer.text
    assert answer.json()["message"] == "Delete in progress. This may take some time."
    event = await service.event(answer.json()["event_id"])
    assert (event["status"], event["event_type"]) == ("SUCCEEDED", "DELETE_ALL")
    return event


async def furnish(service: Service) -> None:
    """Store one memory for each combination of ids that deletes must distinguish."""
    rooms: dict[str, dict[str, Any]] = {
        "maya": {"user_id": "maya"},
        "maya with bot": {"user_id": "maya", "agent_id": "bot"},
        "maya, trip": {"user_id": "maya", "metadata": {"trip": "oslo", "n": 3}},
        "jon with bot": {"user_id": "jon", "agent_id": "bot"},
        "bot": {"agent_id": "bot"},
        "run": {"run_id": "r1", "app_id": "shop"},
    }
    for text, body in rooms.items():
        await store(service, text, **body)


EVERYTHING = {"maya", "maya with bot", "maya, trip", "jon with bot", "bot", "run"}
MAYAS = {"maya", "maya with bot", "maya, trip"}
DELETES: dict[str, tuple[Any, set[str]]] = {
    # case: query, deleted memories
    "one user": ({"user_id": "maya"}, MAYAS),
    "ids are anded": ({"user_id": "maya", "agent_id": "bot"}, {"maya with bot"}),
    "any user": ({"user_id": "*"}, MAYAS | {"jon with bot"}),
    "any user of a bot": ({"user_id": "*", "agent_id": "bot"}, {"maya with bot", "jon with bot"}),
    "four wildcards": (dict.fromkeys(IDS, "*"), EVERYTHING),
    "an id given twice": ("user_id=maya&user_id=jon", MAYAS | {"jon with bot"}),
    "filters as Python prints them": ({"filters": str({"user_id": "maya"})}, MAYAS),
    "filters as JSON": ({"filters": json.dumps({"userId": "maya"})}, MAYAS),
    "metadata as Python prints it": (
        {"user_id": "maya", "metadata": str({"trip": "oslo", "n": 3})},
        {"maya, trip"},
    ),
    "nested filters": (
        {"filters": str({"AND": [{"user_id": "maya"}, {"NOT": {"agent_id": "*"}}]})},
        {"maya", "maya, trip"},
    ),
    "a dotted key": ({"user_id": "maya", "metadata.trip": "oslo"}, {"maya, trip"}),
    "an id without memories": ({"user_id": "ada"}, set()),
    "with what old clients add": (
        {"user_id": "maya", "source": "CLI"},
        MAYAS,
    ),
}


async def test_a_delete_reaches_as_far_as_all_its_conditions_together(ledger: Ledger) -> None:
    async with serving(ledger, sync_wait_s=0.01) as service:
        for what, (query, goes) in DELETES.items():
            await furnish(service)
            assert await texts(service) == EVERYTHING, what
            event = await delete(service, query)
            assert await texts(service) == EVERYTHING - goes, what
            assert {line["old_memory"] for line in event["results"]} == goes, what
            assert event["note"] == f"Memories deleted: {len(goes)}."
            rest = {"filters": json.dumps(OF_ALL)}
            await delete(service, rest)


REFUSED: dict[str, tuple[str, str]] = {
    "nothing": ("", "user_id, agent_id, app_id, run_id"),
    "a blank id": ("user_id=", "user_id is blank"),
    "a blank beside another": ("user_id=maya&agent_id=", "agent_id is blank"),
    "metadata without an id": ("metadata={'a': 1}", "user_id, agent_id, app_id, run_id"),
    "only a NOT": ("filters={'NOT': {'user_id': 'maya'}}", "outside NOT"),
    "a filter that is cut off": ("filters={'user_id': 'ma", "neither JSON nor a Python literal"),
    "code instead of a filter": ("filters=dict(user_id='maya')", "neither JSON nor"),
    "a filter that is a word": ("user_id=maya&filters=maya", "neither JSON nor"),
    "a filter that is a list": ("user_id=maya&filters=[1]", "must be an object"),
    "too many names": (
        "user_id=maya&" + "&".join(f"metadata.k{n}=1" for n in range(101)),
        "102 names, the limit is 100",
    ),
    "an unknown condition": ("user_id=maya&colour=red", "colour is not a filter"),
    "an unknown key": ("filters={'user_id': 'maya', 'colour': 'red'}", "Unknown filter key"),
    "an unknown operator": ("filters={'user_id': {'like': 'm'}}", "does not know"),
    "an unknown operator of metadata, negated": (
        "filters={'user_id': 'maya', 'NOT': {'metadata': {'n': {'$in': [1, 2]}}}}",
        "does not know '$in'",
    ),
}


@pytest.mark.parametrize(("query", "holds"), REFUSED.values(), ids=REFUSED.keys())
async def test_a_delete_that_is_not_understood_deletes_nothing(
    service: Service, query: str, holds: str
) -> None:
    memory_id = await store(service, "Maya likes rye", user_id="maya")
    answer = await service.client.delete(f"{ALL}?{query}")
    assert (answer.status_code, holds in error_of(answer)) == (400, True), answer.text
    assert (await service.client.get(f"{ALL}{memory_id}/")).status_code == 200


async def test_all_but_some_values_of_metadata_deletes_only_those(service: Service) -> None:
    for n in range(5):
        await store(service, f"memory {n}", user_id="maya", metadata={"n": n})
    tree = {"AND": [{"user_id": "maya"}, {"NOT": {"metadata": {"n": {"in": [1, 2]}}}}]}
    await delete(service, {"filters": json.dumps(tree)})
    assert await texts(service) == {"memory 1", "memory 2"}


async def test_conditions_in_a_body_count_too(service: Service) -> None:
    await store(service, "one", user_id="maya", metadata={"a": 1})
    await store(service, "two", user_id="maya")
    body = json.dumps({"filters": {"metadata": {"a": 1}}})
    answer = await service.client.request("DELETE", f"{ALL}?user_id=maya", content=body)
    assert answer.status_code == 200, answer.text
    assert await texts(service) == {"two"}


async def test_what_was_said_before_a_delete_does_not_come_back_after_it(
    service: Service,
) -> None:
    engine = service.engine
    waiting = await engine.add("I like tea.", user_id="maya")
    other = await engine.add("I like tea.", user_id="jon")
    await delete(service, {"user_id": "maya"})
    await engine.drain()
    event = await service.event(str(waiting))
    assert (event["status"], event["code"]) == ("FAILED", "CANCELLED")
    assert "deleted before it had an effect" in event["error"]
    assert (await service.event(str(other)))["status"] == "SUCCEEDED"
    assert await texts(service) == {"User likes tea"}
    again = await service.add("I like rum.")
    assert (await service.event(again))["status"] == "SUCCEEDED"
    books = (await service.client.get("/v1/stats/")).json()
    assert (books["identity"], books["total_add_events"]) == (True, 3)


class Attentive(RulesModel):
    """Rules that record the earlier turns of the last request."""

    shown: Sequence[Message] = ()

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        self.shown = request.context
        return await super().extract(request)


async def test_what_was_deleted_is_shown_to_no_model(service: Service) -> None:
    model = Attentive()
    service.engine.with_model(model)
    await service.add("My cat is called Mila.")
    await service.add("I like tea.")
    assert [turn.content for turn in model.shown] == ["My cat is called Mila."]
    await delete(service, {"user_id": "maya"})
    await service.add("I like rum.")
    assert not model.shown


async def test_no_replay_brings_back_what_was_deleted(service: Service) -> None:
    await service.add("I like tea.")
    begun = await service.client.post("/v1/replays/", json={"user_id": "maya"})
    assert begun.status_code == 200, begun.text
    await service.engine.drain()
    await delete(service, {"user_id": "maya"})
    switched = await service.client.post(f"/v1/replays/{begun.json()['id']}/switch/")
    assert (switched.status_code, "deleted with its scope" in error_of(switched)) == (409, True)
    again = await service.client.post("/v1/replays/", json={"user_id": "maya"})
    assert again.status_code == 404, again.text
    assert await texts(service) == set()


@pytest.mark.parametrize("stage", [StageName.RETRIEVE, StageName.APPLY, StageName.RELATE])
async def test_a_worker_in_the_middle_of_an_add_brings_nothing_back(
    service: Service, stage: StageName
) -> None:
    engine = service.engine
    await engine.add("I live in Bern.")
    hint = await engine.run_until(stage)
    await delete(service, {"user_id": "maya"})
    await engine.run(hint)
    await engine.drain()
    assert await texts(service) == set()
    answer = await service.client.post(
        "/v3/memories/search/", json={"query": "Bern", "filters": {"user_id": "maya"}}
    )
    assert (answer.json()["results"], answer.json()["relations"]) == ([], [])
    assert await engine.lane_state() == "IDLE"
    assert (await service.client.get("/v1/stats/")).json()["identity"] is True


async def test_relations_go_with_their_scope_and_an_undo_brings_all_back(
    service: Service,
) -> None:
    await service.add("I live in Bern.")
    await service.add("I work at Siemens.", agent_id="bot")
    before = await texts(service)
    event = await delete(service, {"user_id": "maya"})

    async def relations() -> set[str]:
        body = {"query": "Bern Siemens", "filters": {"user_id": "maya"}}
        answer = await service.client.post("/v3/memories/search/", json=body)
        return {row["target"] for row in answer.json()["relations"]}

    assert await relations() == set()
    answer = await service.client.post(f"/v1/event/{event['id']}/undo/")
    assert answer.status_code == 200, answer.text
    assert await texts(service) == before
    assert await relations() == {"Bern", "Siemens"}
    again = await service.client.post(f"/v1/event/{event['id']}/undo/")
    assert again.status_code == 409


async def test_equal_texts_of_two_scopes_both_come_back(service: Service) -> None:
    await store(service, "Likes rye", user_id="maya")
    await store(service, "Likes rye", user_id="maya", agent_id="bot")
    event = await delete(service, {"user_id": "maya"})
    answer = await service.client.post(f"/v1/event/{event['id']}/undo/")
    assert (answer.status_code, len(answer.json()["restored"])) == (200, 2), answer.text


async def test_a_relation_goes_with_the_last_memory_that_states_it(service: Service) -> None:
    await service.add("I live in Bern.")
    [stored] = await service.listed()
    body = {"query": "Bern", "filters": {"user_id": "maya"}}
    answer = await service.client.post("/v3/memories/search/", json=body)
    assert answer.json()["relations"]
    await service.client.delete(f"{ALL}{stored['id']}/")
    answer = await service.client.post("/v3/memories/search/", json=body)
    assert answer.json()["relations"] == []


async def test_the_history_of_what_was_deleted_names_the_event(service: Service) -> None:
    memory_id = await store(service, "Likes rye", user_id="maya")
    event = await delete(service, {"user_id": "maya"})
    history = (await service.client.get(f"{ALL}{memory_id}/history/")).json()
    assert [entry["event"] for entry in history] == ["ADD", "DELETE"]
    assert history[-1]["event_id"] == event["id"]


async def test_another_projects_memories_survive_four_wildcards(service: Service) -> None:
    await store(service, "mine", user_id="maya")
    _, key = await service.engine.ledger.projects.create("theirs")
    theirs = {"Authorization": f"Token {key}"}
    answer = await service.client.delete(ALL, params=dict.fromkeys(IDS, "*"), headers=theirs)
    assert answer.status_code == 200
    assert await texts(service) == {"mine"}


# ── users, agents, apps, runs ────────────────────────────────────────────────────────────────────


async def test_deleting_a_user_takes_all_that_carries_the_id(service: Service) -> None:
    odd = "a/b c@d%"
    await store(service, "one", user_id=odd)
    await store(service, "two", user_id=odd, agent_id="bot")
    await store(service, "three", user_id="jon")
    path = "/v2/entities/user/a%2Fb%20c%40d%25/"
    [entity] = (await service.client.get(path)).json()
    assert (entity["id"], entity["name"], entity["total_memories"]) == (odd, odd, 2)
    answer = await service.client.delete(path)
    assert await texts(service) == {"three"}
    engine = service.engine
    await erasure.finish(erasures=engine.ledger.erasures, index=engine.services.index)
    event = await service.event(answer.json()["event_id"])
    assert (event["status"], event["event_type"]) == ("SUCCEEDED", "DELETE_USER")
    assert (await service.client.get(path)).status_code == 404
    # Clients delete one entity after another from a list: this one went with the user.
    assert (await service.client.delete("/v1/entities/agent/bot/")).status_code == 200
    wrong = await service.client.delete("/v2/entities/planet/mars/")
    assert (wrong.status_code, error_of(wrong)) == (400, "Invalid entity type")


# ── batches ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_batch_changes_all_or_nothing(service: Service) -> None:
    tea = await store(service, "tea", user_id="maya")
    rum = await store(service, "rum", user_id="maya")
    swap = [{"memory_id": tea, "text": "rum"}, {"memory_id": rum, "text": "tea"}]
    answer = await service.client.put("/v1/batch/", json={"memories": swap})
    assert answer.json() == {"message": "Successfully updated 2 memories"}
    assert (await service.client.get(f"{ALL}{tea}/")).json()["memory"] == "rum"

    halves = [{"memory_id": tea, "text": "gin"}, {"memory_id": str(uuid4()), "text": "ale"}]
    answer = await service.client.put("/v1/batch/", json={"memories": halves})
    assert (answer.status_code, halves[1]["memory_id"] in error_of(answer)) == (404, True)
    assert (await service.client.get(f"{ALL}{tea}/")).json()["memory"] == "rum"

    answer = await service.client.request(
        "DELETE", "/v1/batch/", json={"memories": [{"memory_id": m} for m in (tea, rum)]}
    )
    assert answer.json() == {"message": "Successfully deleted 2 memories"}
    assert await texts(service) == set()


async def test_a_batch_of_a_thousand_is_taken_and_one_more_refused(service: Service) -> None:
    many = [{"memory_id": str(UUID(int=n)), "text": f"t{n}"} for n in range(1_001)]
    for method, done in (("PUT", "updated"), ("DELETE", "deleted")):
        answer = await service.client.request(method, "/v1/batch/", json={"memories": many})
        assert answer.status_code == 400
        assert f"Maximum of 1000 memories can be {done} in a single request" in error_of(answer)
        answer = await service.client.request(method, "/v1/batch/", json={"memories": many[1:]})
        assert answer.status_code == 404


# ── undo of a delete, and replays after it ───────────────────────────────────────────────────────


async def turns(service: Service) -> set[str]:
    hits = await service.search("peanuts Berlin", threshold=0, include=["turns"])
    return {hit["memory"] for hit in hits}


async def undo(service: Service, event: dict[str, Any]) -> None:
    answer = await service.client.post(f"/v1/event/{event['id']}/undo/")
    assert answer.status_code == 200, answer.text


async def replay(service: Service) -> str:
    """Replay maya's scope to its end; return the replay's id."""
    begun = await service.client.post("/v1/replays/", json={"user_id": "maya"})
    assert begun.status_code == 200, begun.text
    await service.engine.drain()
    return str(begun.json()["id"])


async def switch(service: Service, replay_id: str) -> httpx.Response:
    return await service.client.post(f"/v1/replays/{replay_id}/switch/")


async def edits_lost(service: Service, replay_id: str) -> set[tuple[str, str]]:
    diff = (await service.client.get(f"/v1/replays/{replay_id}/diff/")).json()
    return {(edit["memory"], edit["edit"]) for edit in diff["edits_lost"]}


BERLIN, PEANUTS = "I live in Berlin.", "I am allergic to peanuts."


async def test_an_undo_of_a_delete_shows_the_turns_again(service: Service) -> None:
    await service.add(BERLIN)
    await service.add(PEANUTS, agent_id="bot")
    await service.engine.turns.catch_up()
    event = await delete(service, {"user_id": "maya"})
    await service.engine.turns.catch_up()
    assert await turns(service) == set()
    await undo(service, event)
    assert await turns(service) == {BERLIN, PEANUTS}
    await service.engine.turns.catch_up()
    records = [
        record
        for name in await service.engine.vectors.list_cols()
        for record in await service.engine.vectors.list(name, where={}, limit=100)
    ]
    assert len(records) == 4  # two memories and two turns


async def test_a_replay_after_an_undone_delete_keeps_what_came_back(service: Service) -> None:
    for text in (BERLIN, PEANUTS):
        await service.add(text)
    await undo(service, await delete(service, {"user_id": "maya"}))
    await service.add("I play chess.")
    before = await texts(service)
    replay_id = await replay(service)
    assert await edits_lost(service, replay_id) == set()
    switched = await switch(service, replay_id)
    assert switched.status_code == 200, switched.text
    assert await texts(service) == before
    assert len(before) == 3


@pytest.mark.parametrize("first", [0, 1])
async def test_two_deletes_are_undone_in_either_order(service: Service, first: int) -> None:
    deletes = []
    for text in (BERLIN, PEANUTS):
        await service.add(text)
        deletes.append(await delete(service, {"user_id": "maya"}))
    await undo(service, deletes[first])
    assert await turns(service) == (set() if first == 0 else {PEANUTS})
    await undo(service, deletes[1 - first])
    assert await turns(service) == {BERLIN, PEANUTS}
    assert len(await texts(service)) == 2


async def test_what_a_replay_cannot_read_is_not_lost_unseen(service: Service) -> None:
    """After the first of two deletes is undone, its memory is back but its turn is still hidden."""
    await service.add(BERLIN)
    event = await delete(service, {"user_id": "maya"})
    await service.add(PEANUTS)
    await delete(service, {"user_id": "maya"})
    await undo(service, event)
    await service.add("I play chess.")
    replay_id = await replay(service)
    assert await edits_lost(service, replay_id) == {("User lives in Berlin", "UPDATE")}
    refused = await switch(service, replay_id)
    assert (refused.status_code, "restored by a person" in error_of(refused)) == (409, True)


async def test_a_replay_from_before_an_undo_is_not_switched_on(service: Service) -> None:
    await service.add(BERLIN)
    event = await delete(service, {"user_id": "maya"})
    await service.add(PEANUTS)
    replay_id = await replay(service)
    await undo(service, event)
    refused = await switch(service, replay_id)
    assert (refused.status_code, "brought back since" in error_of(refused)) == (409, True)


async def test_no_replay_brings_back_unseen_what_a_filter_deleted(service: Service) -> None:
    await service.add(BERLIN)
    await service.add(PEANUTS, metadata={"topic": "health"})
    event = await delete(service, {"user_id": "maya", "metadata.topic": "health"})
    lost = {("User is allergic to peanuts", "DELETE")}
    replay_id = await replay(service)
    assert await edits_lost(service, replay_id) == lost
    assert (await switch(service, replay_id)).status_code == 409
    assert await texts(service) == {"User lives in Berlin"}
    await undo(service, event)
    assert await edits_lost(service, replay_id) == set()
    assert (await switch(service, replay_id)).status_code == 200
    assert len(await texts(service)) == 2


async def test_an_edit_that_an_undo_brought_back_is_not_lost_unseen(service: Service) -> None:
    await service.add(BERLIN, metadata={"of": "a form"})
    [memory] = await service.listed()
    await service.client.put(f"{ALL}{memory['id']}/", json={"text": "User lives in Bern"})
    await undo(service, await delete(service, {"user_id": "maya", "metadata.of": "a form"}))
    replay_id = await replay(service)
    assert await edits_lost(service, replay_id) == {("User lives in Bern", "UPDATE")}


async def test_what_was_deleted_and_said_again_is_not_lost(service: Service) -> None:
    await service.add(BERLIN)
    [memory] = await service.listed()
    await service.client.delete(f"{ALL}{memory['id']}/")
    await service.add(BERLIN)
    replay_id = await replay(service)
    assert await edits_lost(service, replay_id) == set()
    assert (await switch(service, replay_id)).status_code == 200
