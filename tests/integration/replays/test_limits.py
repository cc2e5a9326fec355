"""Replays that are refused, and the limits of a project."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from pipeline.domain.lanes import Hint
from pipeline.lanes.load import LoadView
from pipeline.model_settings import LLMSettings
from tests.support.api_service import MAYA, Service, error_of, serving
from tests.support.replaying import REPLAYS, begun, replayed, switch, texts

BAD: dict[str, tuple[object, str]] = {
    "no id": ({}, "at least one of user_id"),
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
    assert holds in error_of(answer)


async def test_ids_without_events_have_nothing_to_replay(service: Service) -> None:
    answer = await service.client.post(REPLAYS, json={"user_id": "nobody"})
    assert answer.status_code == 404
    assert "no event that has ended" in error_of(answer)
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
    assert (answer.status_code, "does not read custom_instructions" in error_of(answer)) == (
        400,
        True,
    )
    assert (await service.client.post(REPLAYS, json=MAYA)).status_code == 200


async def test_a_project_has_so_many_open_replays_and_no_more(service: Service) -> None:
    await service.add("Likes tea.")
    begun = [service.client.post(REPLAYS, json=MAYA) for _ in range(5)]
    answers = await asyncio.gather(*begun)
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 409, 409]
    refused = next(answer for answer in answers if answer.status_code == 409)
    assert "neither switched on nor discarded; at most 3" in error_of(refused)
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
    assert (refused.status_code, "at most 3 may wait" in error_of(refused)) == (409, True)
    await service.engine.drain()
    await begun(service)


async def test_the_lanes_of_replays_count_as_their_projects(service: Service) -> None:
    """In the API's load, and in the sweeper's, which counts the lanes of each replay separately."""
    engine, view = service.engine, LoadView(service.engine.ledger.engine)
    await service.add("Likes tea.")
    first, second = await begun(service), await begun(service)
    project = engine.project.id
    load = await view.look(scope_events=1)
    assert (load.lanes, load.projects, load.deep) == ({(project, False): 2}, {}, {})
    assert await view.lanes() == {(UUID(replay["id"]), False): 2 for replay in (first, second)}
    await engine.add("Likes rum.")
    assert (await view.look(scope_events=9)).lanes == {(project, False): 3}
    assert set((await view.lanes()).values()) == {3}


async def test_a_replay_is_kicked_in_its_projects_name(service: Service) -> None:
    kicked: list[UUID] = []

    class Kicks:
        def kick(self, hint: Hint, project_id: UUID) -> None:
            kicked.append(project_id)
            service.engine.hints.kick(hint, project_id)

    await service.add("Likes tea.")
    service.app.state.api = replace(service.api, dispatcher=Kicks())
    replay = await replayed(service)
    await service.engine.add("Likes rum.")
    await service.engine.drain()
    assert (await switch(service, replay["id"])).status_code == 409
    assert kicked == [service.engine.project.id] * 2
