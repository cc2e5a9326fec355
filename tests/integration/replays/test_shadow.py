"""Replay of a whole scope into a shadow: isolated, compared, then switched on or discarded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from sqlalchemy import event, func, select

from pipeline.adapters.embedder_hash import HashEmbedder
from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import MalformedAnswer, StoreUnavailable
from pipeline.domain.events import Instructions, StageName
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.lanes import Wake
from pipeline.domain.tenants import ProjectId
from pipeline.domain.usage import Answer
from pipeline.lanes.load import LoadView
from pipeline.ledger.tables import metadata
from pipeline.models.override import Workshop
from pipeline.ports import ExtractionRequest
from pipeline.settings import LLMSettings, ModelSettings
from pipeline.vector_index.index import VectorIndex
from tests.integration.api.test_bad_input import ADD, MAYA, Service, said, serving
from tests.support.engine import LEASE_S, Engine

REPLAYS = "/v1/replays/"
REMOTE = {
    "llm": LLMSettings(model="openai/small"),
    "embedder": ModelSettings(model="openai/words"),
    "replay_models": ("openai/big", "openai/other"),
    "max_project_replays": 3,
}


@dataclass
class Tagged(RulesModel):
    """Model that keeps each message whole, after its tag or the custom instructions."""

    tag: str = ""
    seen: list[str | None] = field(default_factory=list)

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        if any("poison" in sourced.message.content for sourced in request.messages) and self.tag:
            raise MalformedAnswer("no JSON")
        self.seen.append(request.instructions.custom)
        tag = self.tag or request.instructions.custom or ""
        return Answer(
            tuple(
                Fact(f"{tag} {sourced.message.content}".strip(), sourced.source)
                for sourced in request.messages
            )
        )

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        return Answer(tuple(Decision(n, Outcome.ADD, "New.", f.text) for n, f in enumerate(facts)))


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    """A service with all vectors in one collection, so that a shadow shares it with its scope."""
    async with serving(engine.ledger) as built:
        services, stores = built.engine.services, built.api.stores
        index = VectorIndex(
            built.engine.vectors, built.engine.ledger.memory_vectors, services.embedder, buckets=1
        )
        built.engine.services = replace(services, model=Tagged(), index=index)
        settings = built.api.settings.model_copy(update=REMOTE)
        built.app.state.api = replace(
            built.api, settings=settings, stores=replace(stores, index=index)
        )
        yield built


async def begun(service: Service, **body: object) -> dict[str, Any]:
    answer = await service.client.post(REPLAYS, json=MAYA | body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def replayed(service: Service, **body: object) -> dict[str, Any]:
    """A replay that has ended."""
    replay = await begun(service, **body)
    await service.engine.drain()
    await service.engine.services.index.catch_up()
    return await look(service, replay["id"])


async def look(service: Service, replay_id: str, part: str = "") -> dict[str, Any]:
    answer = await service.client.get(f"{REPLAYS}{replay_id}/{part}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def switch(service: Service, replay_id: str, **body: object) -> httpx.Response:
    return await service.client.post(f"{REPLAYS}{replay_id}/switch/", json=body)


async def texts(service: Service) -> list[str]:
    return sorted(row["memory"] for row in await service.listed(**MAYA))


async def rows(engine: Engine, *, of: UUID | None = None) -> dict[str, int]:
    """Number of rows of each table, in one project if `of` names it."""
    counts = {}
    await engine.ledger.books.fold()
    async with engine.ledger.engine.connect() as connection:
        for name, table in metadata.tables.items():
            if name == "vector_collections":  # one row per collection, not per project
                continue
            if of is None or "project_id" in table.c:
                query = select(func.count()).select_from(table)
                query = query if of is None else query.where(table.c.project_id == of)
                counts[name] = await connection.scalar(query) or 0
    return counts


async def figures(service: Service) -> dict[str, Any]:
    """`/v1/stats/`, without the search figures, which this test changes itself."""
    stats = dict((await service.client.get("/v1/stats/")).json())
    return {name: value for name, value in stats.items() if "retrieval" not in name}


async def test_nothing_of_a_replay_shows_until_it_is_switched_on(service: Service) -> None:
    """Not in lists, searches, events, relations or figures, and not in the index."""
    await service.add("Likes tea.", "Likes rum.")
    before = (
        await texts(service),
        await figures(service),
        (await service.client.get("/v1/events/")).json(),
        [hit["id"] for hit in await service.search("What does she like?")],
        await rows(service.engine, of=service.engine.project.id),
    )
    replay = await replayed(service, custom_instructions="Say it")
    assert (replay["status"], replay["accepted"], replay["succeeded"]) == ("READY", 1, 1)
    after = (
        await texts(service),
        await figures(service),
        (await service.client.get("/v1/events/")).json(),
        [hit["id"] for hit in await service.search("What does she like?")],
        await rows(service.engine, of=service.engine.project.id),
    )
    assert after[:4] == before[:4]
    # The search above adds a row to `books`.
    assert after[4] == before[4] | {"shadows": 1, "books": after[4]["books"]}
    books = await service.engine.ledger.books.accounts(ProjectId(UUID(replay["id"])))
    assert (books.balanced, books.accepted, books.memories) == (True, 1, 2)


async def test_new_instructions_reach_the_model_before_an_events_own(service: Service) -> None:
    await service.add("Likes tea.", custom_instructions="Old")
    await service.add("Likes rum.")
    service.engine.with_model(model := Tagged())
    await replayed(service, custom_instructions="New")
    assert set(model.seen) == {"New"}
    model.seen.clear()
    await replayed(service)
    assert model.seen == ["Old", None]


async def test_a_diff_says_what_would_come_go_and_read_otherwise(service: Service) -> None:
    await service.add("Likes tea.")
    await service.add("Likes rum.")
    person = await service.add("Likes gin.")
    [gin] = (await service.event(person))["results"]
    await service.client.delete(f"/v1/memories/{gin['id']}/")
    service.engine.with_model(Tagged(tag="She"))
    replay = await replayed(service)
    diff = await look(service, replay["id"], "diff/")
    assert diff["counts"] == {
        "same": 0,
        "changed": 2,
        "only_live": 0,
        "only_replay": 1,
        "relations_added": diff["counts"]["relations_added"],
        "relations_removed": diff["counts"]["relations_removed"],
        "edits_lost": 0,
    }
    assert [(pair["memory"], pair["becomes"]["memory"]) for pair in diff["changed"]] == [
        ("Likes tea.", "She Likes tea."),
        ("Likes rum.", "She Likes rum."),
    ]
    assert [row["event_id"] for row in diff["only_replay"]] == [person]


async def test_a_diff_waits_for_the_replay_to_end(service: Service) -> None:
    await service.add("Likes tea.")
    replay = await begun(service)
    assert replay["status"] == "RUNNING"
    answer = await service.client.get(f"{REPLAYS}{replay['id']}/diff/")
    assert answer.status_code == 409
    assert "0 of 1 events have ended" in said(answer)
    assert (await switch(service, replay["id"])).status_code == 409


async def test_a_switch_puts_the_replays_memories_in_place_of_the_scopes(service: Service) -> None:
    event_id = await service.add("I live in Berlin.")
    [old] = await service.listed(**MAYA)
    service.engine.with_model(Tagged(tag="Maya says:"))
    replay = await replayed(service)
    answer = await switch(service, replay["id"])
    assert answer.status_code == 200, answer.text
    assert (answer.json()["status"], answer.json()["removed"], answer.json()["adopted"]) == (
        "SWITCHED",
        1,
        1,
    )
    [new] = await service.listed(**MAYA)
    assert (new["memory"], new["event_id"]) == ("Maya says: I live in Berlin.", event_id)
    assert new["timestamp"] == old["timestamp"]
    assert new["created_at"] == (await service.event(event_id))["created_at"]
    hits = await service.search("Maya says: I live where?")
    assert [hit["id"] for hit in hits] == [new["id"]]
    assert hits[0]["score_breakdown"]["semantic"] > 0.5
    history = (await service.client.get(f"/v1/memories/{old['id']}/history/")).json()
    assert history[-1]["event"] == "DELETE"
    assert history[-1]["reason"] == f"Replaced by replay {replay['id']}."
    [line] = (await service.client.get(f"/v1/memories/{new['id']}/history/")).json()
    assert line["event_id"] == event_id
    event = await service.event(event_id)
    assert [line["id"] for line in event["results"]] == [old["id"], new["id"]]
    assert (event["status"], event["graph_status"]) == ("SUCCEEDED", "SUCCEEDED")
    assert (await service.client.get("/v1/stats/")).json()["identity"]
    # No row of the shadow is left, in the ledger or in the index.
    left = await rows(service.engine, of=UUID(replay["id"]))
    assert not any(left.values()), left
    projects = [
        record.payload["project_id"]
        for name in await service.engine.vectors.list_cols()
        for record in await service.engine.vectors.list(name, where={}, limit=100)
    ]
    assert projects == [str(service.engine.project.id)]
    assert (await switch(service, replay["id"])).status_code == 409


class Corrected(Tagged):
    """Model that replaces rum with gin."""

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        answer = await super().extract(request)
        facts = tuple(replace(fact, text=fact.text.replace("rum", "gin")) for fact in answer.value)
        return Answer(facts)


async def by_text(service: Service) -> dict[str, str]:
    return {row["memory"]: row["id"] for row in await service.listed(**MAYA)}


async def test_a_memory_that_a_replay_does_not_change_keeps_its_id(service: Service) -> None:
    event_ids = [await service.add(f"Likes {drink}.") for drink in ("tea", "milk", "rum", "cola")]
    before = await by_text(service)
    service.engine.with_model(Corrected())
    replay = await replayed(service)
    answer = await switch(service, replay["id"])
    assert answer.status_code == 200, answer.text
    assert {key: answer.json()[key] for key in ("kept", "removed", "adopted")} == {
        "kept": 3,
        "removed": 1,
        "adopted": 1,
    }
    after = await by_text(service)
    assert after.keys() == {"Likes tea.", "Likes milk.", "Likes gin.", "Likes cola."}
    unchanged = after.keys() & before.keys()
    assert {text: after[text] for text in unchanged} == {text: before[text] for text in unchanged}
    assert after["Likes gin."] not in before.values()
    tea = after["Likes tea."]
    opinion = {"memory_id": tea, "feedback": "POSITIVE"}
    assert (await service.client.post("/v1/feedback/", json=opinion)).status_code == 200
    history = (await service.client.get(f"/v1/memories/{tea}/history/")).json()
    assert [line["event"] for line in history] == ["ADD"]
    # It is on the receipt once, and a search still finds it.
    assert [line["id"] for line in (await service.event(event_ids[0]))["results"]] == [tea]
    assert tea in [hit["id"] for hit in await service.search("Likes tea.")]
    left = await rows(service.engine, of=UUID(replay["id"]))
    assert not any(left.values()), left
    undone = await service.client.post(f"/v1/event/{event_ids[0]}/undo/")
    assert undone.status_code == 200, undone.text
    assert await texts(service) == ["Likes cola.", "Likes gin.", "Likes milk."]


async def test_a_memory_of_another_history_gets_the_replays_id(service: Service) -> None:
    """An undo follows the history, so a memory with the same text is not the same memory."""
    await service.add("Likes tea.")
    [old] = await service.listed(**MAYA)
    for text in ("Likes rum.", "Likes tea."):
        await service.client.put(f"/v1/memories/{old['id']}/", json={"text": text})
    replay = await replayed(service)
    answer = await switch(service, replay["id"])
    assert answer.status_code == 200, answer.text
    assert answer.json()["kept"] == 0
    [new] = await service.listed(**MAYA)
    assert (new["memory"], new["id"] == old["id"]) == ("Likes tea.", False)


async def test_a_switch_takes_as_many_statements_for_many_memories_as_for_one(
    service: Service,
) -> None:
    counts = []
    for many in (1, 12):
        for n in range(many):
            await service.add(f"Likes drink {many}-{n}.")
        service.engine.with_model(Tagged(tag=f"Anew {many}:"))
        replay = await replayed(service)
        statements: list[str] = []

        def note(
            _c: object, _d: object, statement: str, *_: object, to: list[str] = statements
        ) -> None:
            to.append(statement)

        shadow = await service.engine.ledger.shadows.get(
            service.engine.project.id, UUID(replay["id"])
        )
        texts = await service.engine.ledger.switch.texts(shadow, embedder="another")
        assert len(texts) >= many
        engine = service.engine.ledger.engine.sync_engine
        event.listen(engine, "before_cursor_execute", note)
        done = await service.engine.ledger.switch.switch(
            service.engine.project.id,
            shadow.id,
            force=False,
            vectors=dict(zip(texts, await HashEmbedder().embed(texts), strict=True)),
            embedder="another",
        )
        event.remove(engine, "before_cursor_execute", note)
        assert len(done.here) == len(texts)
        counts.append(len(statements))
        service.engine.with_model(Tagged())
    assert counts[0] == counts[1]


async def test_a_switch_compares_again_where_a_memory_changed_in_between(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.add("Likes tea.")
    [tea] = await service.listed(**MAYA)
    replay = await replayed(service)
    switching = service.engine.ledger.switch
    compared = switching._compared

    async def and_then_an_edit(project_id: ProjectId, shadow_id: UUID) -> Any:
        before = await compared(project_id, shadow_id)
        edit = {"text": "Likes green tea."}
        assert (await service.client.put(f"/v1/memories/{tea['id']}/", json=edit)).is_success
        return before

    monkeypatch.setattr(switching, "_compared", and_then_an_edit)
    answer = await switch(service, replay["id"])
    assert answer.status_code == 409
    assert f"Memory {tea['id']} was edited" in said(answer)
    assert await texts(service) == ["Likes green tea."]


async def test_the_scope_goes_on_from_what_was_switched_on(service: Service) -> None:
    """The next add updates the new memory, and an undo reverts it."""
    engine = service.engine
    first = await service.add("I live in Berlin.")
    engine.with_model(RulesModel())
    replay = await replayed(service)
    assert (await switch(service, replay["id"])).status_code == 200
    second = await service.add("I moved to Oslo.")
    assert [line["event"] for line in (await service.event(second))["results"]] == ["UPDATE"]
    [memory] = await service.listed(**MAYA)
    assert "Oslo" in memory["memory"]
    near = await engine.relations("user berlin oslo", **MAYA)
    assert [edge.destination for edge in near if edge.relation == "lives_in"] == ["Oslo"]
    assert (await service.client.post(f"/v1/event/{second}/undo/")).status_code == 200
    [memory] = await service.listed(**MAYA)
    assert "Berlin" in memory["memory"]
    undone = await service.client.post(f"/v1/event/{first}/undo/")
    assert undone.status_code == 200, undone.text
    assert await texts(service) == []


async def test_events_added_since_are_replayed_before_a_switch(service: Service) -> None:
    await service.add("Likes tea.")
    replay = await replayed(service, custom_instructions="She")
    late = await service.client.post(ADD, json={"messages": "Likes rum."} | MAYA)
    busy = await switch(service, replay["id"])
    assert busy.status_code == 409
    assert "1 events of these ids are under way" in said(busy)
    await service.engine.drain()
    assert (await look(service, replay["id"]))["behind"] == 1
    behind = await switch(service, replay["id"])
    assert behind.status_code == 409
    assert "1 events came since" in said(behind)
    assert await texts(service) == ["Likes rum.", "Likes tea."]
    await service.engine.drain()
    replay = await look(service, replay["id"])
    assert (replay["status"], replay["behind"], replay["accepted"]) == ("READY", 0, 2)
    assert (await switch(service, replay["id"])).status_code == 200
    assert await texts(service) == ["She Likes rum.", "She Likes tea."]
    assert (await service.event(late.json()["event_id"]))["results"][-1]["memory"].startswith("She")


async def test_edits_of_people_are_not_lost_without_being_told(service: Service) -> None:
    for text in ("Likes tea.", "Likes rum.", "Likes gin."):
        await service.add(text)
    ids = {row["memory"]: row["id"] for row in await service.listed(**MAYA)}
    await service.client.put(f"/v1/memories/{ids['Likes tea.']}/", json={"text": "Loves tea."})
    await service.client.delete(f"/v1/memories/{ids['Likes rum.']}/")
    await service.client.put(
        f"/v1/memories/{ids['Likes gin.']}/", json={"metadata": {"sure": True}}
    )
    replay = await replayed(service)
    lost = (await look(service, replay["id"], "diff/"))["edits_lost"]
    assert {(edit["memory"], edit["edit"]) for edit in lost} == {
        ("Loves tea.", "UPDATE"),
        ("Likes rum.", "DELETE"),
        ("Likes gin.", "UPDATE"),
    }
    refused = await switch(service, replay["id"])
    assert refused.status_code == 409
    assert all(memory_id in said(refused) for memory_id in ids.values())
    assert '{"force": true}' in said(refused)
    assert await texts(service) == ["Likes gin.", "Loves tea."]
    assert (await switch(service, replay["id"], force=True)).status_code == 200
    assert await texts(service) == ["Likes gin.", "Likes rum.", "Likes tea."]


async def test_an_event_that_fails_only_in_the_replay_is_not_lost_unseen(service: Service) -> None:
    await service.add("Likes tea.")
    event_id = await service.add("Likes poison.")
    service.engine.with_model(Tagged(tag="She"))
    replay = await replayed(service)
    assert replay["failures"] == {"LLM_BAD_OUTPUT": 1}
    refused = await switch(service, replay["id"])
    assert refused.status_code == 409
    assert "1 events that SUCCEEDED have FAILED" in said(refused)
    assert (await switch(service, replay["id"], force=True)).status_code == 200
    event = await service.event(event_id)
    assert (event["status"], event["code"]) == ("FAILED", "LLM_BAD_OUTPUT")
    assert (await service.client.get("/v1/stats/")).json()["identity"]
    service.engine.with_model(Tagged())
    assert (await service.client.post(f"/v1/event/{event_id}/replay/")).status_code == 200
    await service.engine.drain()
    assert await texts(service) == ["Likes poison.", "She Likes tea."]


async def test_an_event_that_had_failed_succeeds_by_a_switch(service: Service) -> None:
    service.engine.with_model(Tagged(tag="She"))
    event_id = await service.add("Likes poison.")
    assert (await service.event(event_id))["status"] == "FAILED"
    service.engine.with_model(Tagged())
    replay = await replayed(service)
    assert (await switch(service, replay["id"])).status_code == 200
    event = await service.event(event_id)
    assert (event["status"], event["code"], len(event["results"])) == ("SUCCEEDED", None, 1)


async def test_what_was_taken_back_is_not_replayed_and_not_switched_on(service: Service) -> None:
    undone, later = await service.add("Likes tea."), await service.add("Likes gin.")
    await service.client.post(f"/v1/event/{undone}/undo/")
    answer = await service.client.post(ADD, json={"messages": "Likes mead."} | MAYA)
    await service.client.post(f"/v1/event/{answer.json()['event_id']}/cancel/")
    await service.engine.drain()
    replay = await replayed(service)
    assert replay["accepted"] == 1
    assert (await look(service, replay["id"], "diff/"))["counts"]["same"] == 1
    await service.client.post(f"/v1/event/{later}/undo/")
    refused = await switch(service, replay["id"])
    assert refused.status_code == 409
    assert f"Event {later} was undone since" in said(refused)
    assert await texts(service) == []


async def test_a_graph_replayed_late_does_not_change_a_replays_order(service: Service) -> None:
    @dataclass
    class NoGraph(RulesModel):
        async def relate(self, *_: Any) -> Any:
            raise MalformedAnswer("no JSON")

    engine = service.engine
    engine.with_model(NoGraph())
    first = await service.add("I live in Berlin.")
    engine.with_model(RulesModel())
    await service.add("I moved to Oslo.")
    await service.client.post(f"/v1/event/{first}/replay/", json={"stage": "relate"})
    await engine.drain()
    replay = await replayed(service)
    assert (await look(service, replay["id"], "diff/"))["counts"]["same"] == 1
    assert (await switch(service, replay["id"])).status_code == 200
    [memory] = await service.listed(**MAYA)
    assert "Oslo" in memory["memory"]


async def test_a_discarded_replay_leaves_nothing_behind(service: Service) -> None:
    await service.add("I live in Berlin. My sister Anna lives in Oslo.")
    await service.engine.services.index.catch_up()
    before = await rows(service.engine)
    replay = await replayed(service, custom_instructions="New")
    assert (await rows(service.engine))["memories"] > before["memories"]
    answer = await service.client.delete(f"{REPLAYS}{replay['id']}/")
    assert answer.status_code == 200
    assert await rows(service.engine) == before
    for name in await service.engine.vectors.list_cols():
        records = await service.engine.vectors.list(
            name, where={"project_id": replay["id"]}, limit=9
        )
        assert records == [], name
    assert (await service.client.get(f"{REPLAYS}{replay['id']}/")).status_code == 404


@pytest.mark.parametrize("stage", list(StageName))
async def test_a_replay_discarded_under_its_worker_stops_it(
    service: Service, stage: StageName
) -> None:
    engine = service.engine
    await service.add("I live in Berlin.", "I like tea.")
    await service.add("I moved to Oslo.")  # so that there is something to decide
    before = await rows(engine)
    replay = await begun(service)
    hint = await engine.run_until(stage)
    activation, _ = await engine.claim(hint)
    await service.client.delete(f"{REPLAYS}{replay['id']}/")
    await engine.pass_time(LEASE_S + 1)
    assert await engine.sweep() == 0
    engine.hints.waiting.append(replace(hint, fence=activation.fence))
    await engine.drain()
    assert await rows(engine) == before


async def test_a_replay_is_not_half_discarded_while_the_index_is_down(service: Service) -> None:
    await service.add("Likes tea.")
    replay = await replayed(service)
    stores, engine = service.api.stores, service.engine

    class Down(type(engine.vectors)):  # type: ignore[misc]
        async def delete(self, name: str, ids: Sequence[UUID]) -> None:
            raise StoreUnavailable("refused")

    away = VectorIndex(Down(), engine.ledger.memory_vectors, stores.embedder, buckets=4)
    service.app.state.api = replace(service.api, stores=replace(stores, index=away))
    assert (await service.client.delete(f"{REPLAYS}{replay['id']}/")).status_code == 503
    service.app.state.api = replace(service.api, stores=stores)
    assert (await service.client.delete(f"{REPLAYS}{replay['id']}/")).status_code == 200


class OtherHash(HashEmbedder):
    """Embedder with other vectors, of another length."""

    @property
    def name(self) -> str:
        return "openai/other"

    async def dimensions(self) -> int:
        return 8

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        return [list(vector[:8]) for vector in await super().embed(texts)]


async def test_other_models_are_asked_and_their_vectors_kept_apart(service: Service) -> None:
    engine = service.engine
    built: list[str] = []

    def build(name: str) -> RulesModel:
        built.append(name)
        return Tagged(tag="Big:")

    workshop = Workshop.of(build, lambda name: OtherHash())
    engine.services = replace(engine.services, workshop=workshop)
    await service.add("I live in Berlin.")
    await service.add("I like tea.")
    mine = await engine.vectors.list_cols()
    replay = await replayed(service, llm_model="openai/big", embedder_model="openai/other")
    await replayed(service, llm_model="openai/big")
    assert built == ["openai/big"]  # the model is built once
    [other] = [name for name in await engine.vectors.list_cols() if "openai-other" in name]
    info = await engine.vectors.col_info(other)
    assert info is not None
    assert (info.dimensions, info.embedder, info.count) == (8, "openai/other", 2)
    assert set(mine) < set(await engine.vectors.list_cols())
    assert (await switch(service, replay["id"])).status_code == 200
    assert await texts(service) == ["Big: I like tea.", "Big: I live in Berlin."]
    hits = await service.search("Where does Maya live? Berlin", threshold=0.1)
    assert hits[0]["memory"] == "Big: I live in Berlin."
    assert await engine.vectors.list(other, where={}, limit=9) == []


BAD: dict[str, tuple[object, str]] = {
    "nobody": ({}, "at least one of user_id"),
    "another provider's model": (MAYA | {"llm_model": "azure/big"}, "openai/small"),
    "a model that is not listed": (MAYA | {"llm_model": "openai/gold"}, "MEMLANE_REPLAY_MODELS"),
    "the built-in model": (MAYA | {"llm_model": "local/rules"}, "openai/small"),
    "an embedder that is not listed": (MAYA | {"embedder_model": "openai/x"}, "openai/words"),
    "a recorded answer to a new question": (
        MAYA | {"answers": "recorded", "custom_instructions": "New"},
        "leave out custom_instructions",
    ),
    "an unknown way to answer": (MAYA | {"answers": "guessed"}, "'recorded'"),
}


@pytest.mark.parametrize(("body", "holds"), BAD.values(), ids=BAD)
async def test_what_cannot_be_replayed_is_refused_and_says_why(
    service: Service, body: object, holds: str
) -> None:
    answer = await service.client.post(REPLAYS, json=body)
    assert answer.status_code == 400, answer.text
    assert holds in said(answer)


async def test_ids_without_events_have_nothing_to_replay(service: Service) -> None:
    answer = await service.client.post(REPLAYS, json={"user_id": "nobody"})
    assert answer.status_code == 404
    assert "no event that has ended" in said(answer)
    assert (await service.client.get(REPLAYS)).json()["count"] == 0


async def test_another_projects_replay_is_not_there(service: Service) -> None:
    await service.add("Likes tea.")
    replay = await replayed(service)
    async with serving(service.engine.ledger) as other:
        for method, part in (("GET", ""), ("GET", "diff/"), ("POST", "switch/"), ("DELETE", "")):
            path = f"{REPLAYS}{replay['id']}/{part}"
            assert (await other.client.request(method, path)).status_code == 404, part
        assert (await other.client.get(REPLAYS)).json()["results"] == []
    for bad, status in (("7", 400), (str(uuid4()), 404)):
        assert (await service.client.get(f"{REPLAYS}{bad}/")).status_code == status
    listed = (await service.client.get(REPLAYS)).json()
    assert [row["id"] for row in listed["results"]] == [replay["id"]]


async def test_only_exactly_these_ids_are_replayed(service: Service) -> None:
    await service.add("Likes tea.")
    await service.add("Likes rum.", agent_id="guide")
    replay = await replayed(service, custom_instructions="She")
    assert replay["accepted"] == 1
    assert (await switch(service, replay["id"])).status_code == 200
    assert await texts(service) == ["Likes rum.", "She Likes tea."]


async def test_instructions_that_no_model_reads_are_refused(service: Service) -> None:
    rules = service.api.settings.model_copy(update={"llm": LLMSettings(model="local/rules")})
    service.app.state.api = replace(service.api, settings=rules)
    await service.add("Likes tea.")
    body = MAYA | {"custom_instructions": "Keep only what she eats."}
    answer = await service.client.post(REPLAYS, json=body)
    assert (answer.status_code, "does not read custom_instructions" in said(answer)) == (400, True)
    assert (await service.client.post(REPLAYS, json=MAYA)).status_code == 200


async def test_a_project_has_so_many_open_replays_and_no_more(service: Service) -> None:
    await service.add("Likes tea.")
    begun = [service.client.post(REPLAYS, json=MAYA) for _ in range(5)]
    answers = await asyncio.gather(*begun)
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 409, 409]
    refused = next(answer for answer in answers if answer.status_code == 409)
    assert "neither switched on nor discarded; at most 3" in said(refused)
    await service.engine.drain()
    done, other, _ = [answer.json()["id"] for answer in answers if answer.status_code == 200]
    assert (await switch(service, done)).status_code == 200
    await begun_again(service)
    assert (await service.client.delete(f"{REPLAYS}{other}/")).status_code == 200
    await begun_again(service)
    assert (await service.client.post(REPLAYS, json=MAYA)).status_code == 409


async def begun_again(service: Service) -> None:
    answer = await service.client.post(REPLAYS, json=MAYA)
    assert answer.status_code == 200, answer.text


async def test_the_events_of_all_replays_together_have_a_limit(service: Service) -> None:
    few = service.api.settings.model_copy(update={"max_project_events": 3})
    service.app.state.api = replace(service.api, settings=few)
    for text in ("Likes tea.", "Likes rum."):
        await service.add(text)
    await begun(service)
    refused = await service.client.post(REPLAYS, json=MAYA)
    assert (refused.status_code, "at most 3 may wait" in said(refused)) == (409, True)
    await service.engine.drain()
    await begun(service)


async def test_the_lanes_of_replays_count_as_their_projects(service: Service) -> None:
    """In the API's load, and in the sweeper's, which counts the lanes of each replay separately."""
    engine, view = service.engine, LoadView(service.engine.ledger.engine)
    await service.add("Likes tea.")
    first, second = await begun(service), await begun(service)
    project = engine.project.id
    load = await view.look(scope_events=1)
    assert (load.lanes, load.projects, load.deep) == ({project: 2}, {}, {})
    assert await view.lanes() == {UUID(first["id"]): 2, UUID(second["id"]): 2}
    await engine.add("Likes rum.")
    assert (await view.look(scope_events=9)).lanes == {project: 3}
    assert set((await view.lanes()).values()) == {3}


async def test_a_replay_is_kicked_in_its_projects_name(service: Service) -> None:
    kicked: list[UUID] = []

    class Kicks:
        def kick(self, wake: Wake, project_id: UUID) -> None:
            kicked.append(project_id)
            service.engine.hints.kick(wake, project_id)

    await service.add("Likes tea.")
    service.app.state.api = replace(service.api, dispatcher=Kicks())
    replay = await replayed(service)
    await service.engine.add("Likes rum.")
    await service.engine.drain()
    assert (await switch(service, replay["id"])).status_code == 409
    assert kicked == [service.engine.project.id] * 2
