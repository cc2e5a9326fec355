"""Replay: an event that FAILED goes to its lane's tail and is tried again, edited on request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import update

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import Conflict, MalformedAnswer, ModelUnavailable, NotFound
from pipeline.domain.events import AddOptions, StageName, Status
from pipeline.domain.messages import Message, Role
from pipeline.events.service import cancel, replay
from pipeline.ledger.tables import events
from tests.support.api_service import ADD, LIVES, Service, error_of, serving
from tests.support.engine import Engine
from tests.support.troubled import Troubled

ALONE = AddOptions(metadata={"batch": "of its own"})
BROKEN = MalformedAnswer("no JSON")


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as built:
        yield built


async def again(
    engine: Engine,
    event_id: UUID,
    *texts: str,
    instructions: Mapping[str, str] | None = None,
) -> None:
    await replay(
        engine.project.id,
        event_id,
        messages=[Message(Role.USER, text) for text in texts],
        instructions=instructions or {},
        dead_letters=engine.ledger.dead_letters,
        dispatcher=engine.hints,
    )


async def failed(engine: Engine, text: str = "I like jazz.", **options: Any) -> UUID:
    """An event that FAILED; from now on the model works."""
    engine.with_model(Troubled(word=text, error=BROKEN))
    event_id = await engine.add(text, **options)
    await engine.drain()
    assert (await engine.event(event_id)).failure_code == "LLM_BAD_OUTPUT"
    engine.with_model(RulesModel())
    return event_id


async def test_a_failed_event_is_tried_again_and_says_so(engine: Engine) -> None:
    event_id = await failed(engine)
    before = await engine.event(event_id)
    await again(engine, event_id)
    waiting = await engine.event(event_id)
    assert (waiting.status, waiting.failure_code, waiting.failure_detail) == ("PENDING", None, None)
    assert (waiting.replays, waiting.created_at) == (1, before.created_at)
    assert waiting.replayed_at is not None
    assert waiting.messages == before.messages
    await engine.drain()
    event = await engine.event(event_id)
    assert event.status is Status.SUCCEEDED
    assert len(event.receipt) == len(await engine.texts()) == 1
    assert await engine.lane_state() == "IDLE"


async def test_a_replayed_event_does_not_overwrite_a_later_statement(engine: Engine) -> None:
    event_id = await failed(engine, "I live in Berlin.")
    await engine.add("I live in Oslo.", options=ALONE)
    await again(engine, event_id)
    assert len(engine.hints.waiting) == 1  # the lane is awake: no second hint
    await engine.drain()
    [text] = await engine.texts()
    assert "Oslo" in text  # processed first, but said later
    [(outcome, _)] = await engine.outcomes(event_id)
    assert outcome == "NOOP"


async def test_a_replay_may_bring_other_messages_and_instructions(engine: Engine) -> None:
    event_id = await failed(engine)
    await again(
        engine, event_id, "I like tea.", "I like rye.", instructions={"custom": "Only drinks."}
    )
    event = await engine.event(event_id)
    assert [message["content"] for message in event.messages] == ["I like tea.", "I like rye."]
    assert event.options["instructions"]["custom"] == "Only drinks."
    await engine.drain()
    stored = " ".join(await engine.texts())
    assert [it in stored for it in ("jazz", "tea", "rye")] == [False, True, True]


async def test_of_two_replays_at_once_one_is_done_and_one_refused(engine: Engine) -> None:
    event_id = await failed(engine)
    answers = await asyncio.gather(
        *(again(engine, event_id) for _ in range(5)), return_exceptions=True
    )
    assert sorted(isinstance(answer, Conflict) for answer in answers) == [False] + [True] * 4
    assert len(engine.hints.waiting) == 1
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.replays, len(event.receipt)) == (Status.SUCCEEDED, 1, 1)


@pytest.mark.parametrize("status", ["PENDING", "RUNNING", "SUCCEEDED"])
async def test_only_what_has_failed_is_replayed(engine: Engine, status: str) -> None:
    event_id = await engine.add("I like jazz.")
    if status == "RUNNING":
        await engine.run_until(StageName.APPLY)
    if status == "SUCCEEDED":
        await engine.drain()
    with pytest.raises(Conflict, match=f"this one is {status}"):
        await again(engine, event_id)
    await engine.drain()
    assert len(await engine.texts()) == 1


async def test_a_cancelled_event_may_come_back(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.")
    await engine.run_until(StageName.APPLY)
    await cancel(
        engine.project.id,
        event_id,
        cancellation=engine.ledger.cancellation,
        dispatcher=engine.hints,
    )
    await again(engine, event_id)
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED
    assert len(await engine.texts()) == 1


async def test_a_replayed_event_has_the_whole_outage_budget_again(engine: Engine) -> None:
    event_id = await failed(engine)
    async with engine.ledger.engine.begin() as connection:
        await connection.exec_driver_sql(
            "UPDATE events SET created_at = created_at - interval '2 days'"
        )
    engine.with_model(Troubled(word="jazz", error=ModelUnavailable("503"), times=1))
    await again(engine, event_id)
    await engine.drain()
    assert (await engine.event(event_id)).wait_code == "LLM_UNAVAILABLE"


async def stored_and_failed(engine: Engine, text: str) -> UUID:
    """An event that FAILED after its memories were stored, as older releases could leave it."""
    event_id = await engine.add(text)
    await engine.drain()
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(
            update(events).where(events.c.id == event_id).values(status=Status.FAILED)
        )
    return event_id


async def test_a_replay_of_what_was_already_stored_stores_nothing_twice(engine: Engine) -> None:
    event_id = await stored_and_failed(engine, "I live in Berlin.")
    await again(engine, event_id)
    await engine.drain()
    event = await engine.event(event_id)
    assert event.status is Status.SUCCEEDED
    assert [line.outcome for line in event.receipt] == ["ADD", "NOOP"]
    assert len(await engine.texts()) == 1


async def test_a_replay_after_its_memory_was_deleted_does_not_store_it(engine: Engine) -> None:
    event_id = await stored_and_failed(engine, "I live in Berlin.")
    [line] = (await engine.event(event_id)).receipt
    assert line.memory_id is not None
    await engine.ledger.editing.retire(engine.project.id, [line.memory_id])
    await again(engine, event_id)
    await engine.drain()
    assert [line.outcome for line in (await engine.event(event_id)).receipt] == ["ADD", "NOOP"]
    assert await engine.texts() == []


async def test_only_the_project_of_an_event_can_replay_it(engine: Engine) -> None:
    event_id = await failed(engine)
    other = await Engine.create(engine.ledger)
    with pytest.raises(NotFound):
        await again(other, event_id)
    assert (await engine.event(event_id)).status is Status.FAILED


async def test_all_that_failed_for_one_reason_comes_back_in_order(service: Service) -> None:
    engine = service.engine
    ids = [await failed(engine, text) for text in ("I live in Berlin.", "I live in Oslo.")]
    other = await failed(engine, "I like tea.", user_id="jon")
    cancelled = (await service.client.post(ADD, json=LIVES | {"user_id": "ann"})).json()["event_id"]
    await service.client.post(f"/v1/event/{cancelled}/cancel/")
    await engine.drain()

    async def replayed(**body: object) -> list[str]:
        answer = await service.client.post("/v1/events/replay/", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["replayed"] == len(answer.json()["event_ids"])
        return list(answer.json()["event_ids"])

    assert await replayed(code="DEADLINE") == []
    assert await replayed(user_id="maya", end_date="2020-01-01") == []
    assert sorted(await replayed(code="LLM_BAD_OUTPUT", user_id="maya")) == sorted(map(str, ids))
    assert await replayed(start_date="2020-01-01") == [str(other)]  # without the cancelled events
    assert await replayed(code="CANCELLED") == [cancelled]
    await engine.drain()
    [text] = await engine.texts()
    assert "Oslo" in text
    assert {(await service.event(str(event_id)))["status"] for event_id in (*ids, other)} == {
        "SUCCEEDED"
    }


async def test_no_replay_reads_messages_that_were_deleted_with_their_scope(
    service: Service,
) -> None:
    engine = service.engine
    event_id = str(await failed(engine, "I live in Berlin."))
    deletion = await service.client.delete("/v1/memories/", params={"user_id": "maya"})
    later = str(await failed(engine, "I like tea."))
    bulk = await service.client.post("/v1/events/replay/", json={"code": "LLM_BAD_OUTPUT"})
    assert bulk.json() == {"replayed": 1, "event_ids": [later]}
    path = f"/v1/event/{event_id}/replay/"
    for dry_run in (False, True):
        refused = await service.client.post(path, json={"dry_run": dry_run})
        assert (refused.status_code, "deleted with its scope" in error_of(refused)) == (409, True)
    await engine.drain()
    assert await engine.texts() == ["User likes tea"]
    await service.client.post(f"/v1/event/{deletion.json()['event_id']}/undo/")
    assert (await service.client.post(path)).status_code == 200
    await engine.drain()
    assert "User lives in Berlin" in await engine.texts()


async def test_the_route_replays_with_and_without_a_body(service: Service) -> None:
    event_id = str(await failed(service.engine))
    path = f"/v1/event/{event_id}/replay/"
    answer = await service.client.post(path)
    assert (answer.status_code, answer.json()["status"]) == (200, "PENDING")
    assert answer.json()["replays"] == 1
    twice = await service.client.post(path)
    assert twice.status_code == 409
    assert "Only FAILED" in error_of(twice)
    await service.client.post(f"/v1/event/{event_id}/cancel/")
    edited = {"messages": "I like tea.", "custom_instructions": "Only drinks."}
    answer = await service.client.post(path, json=edited)
    assert answer.json()["payload"]["messages"] == [{"role": "user", "content": "I like tea."}]
    await service.engine.drain()
    assert (await service.event(event_id))["status"] == "SUCCEEDED"


BAD: dict[str, tuple[str, object, int, str]] = {
    "a bad id": ("/v1/event/7/replay/", None, 400, "event_id should be a valid UUID"),
    "an unknown event": (f"/v1/event/{uuid4()}/replay/", None, 404, "Event not found"),
    "no messages": (f"/v1/event/{uuid4()}/replay/", {"messages": []}, 400, "messages"),
    "another stage": (f"/v1/event/{uuid4()}/replay/", {"stage": "apply"}, 400, "'relate'"),
    "a stage and more": (
        f"/v1/event/{uuid4()}/replay/",
        {"stage": "relate", "messages": "I like tea."},
        400,
        "send only the stage",
    ),
    "a stage and a code": (
        "/v1/events/replay/",
        {"stage": "relate", "code": "DEADLINE"},
        400,
        "leave out code",
    ),
    "a status of graphs without the stage": (
        "/v1/events/replay/",
        {"graph_status": "PARTIAL"},
        400,
        'add "stage": "relate"',
    ),
    "no filter": ("/v1/events/replay/", {}, 400, "at least one of code, stage, graph_status"),
    "no body": ("/v1/events/replay/", None, 400, "body"),
    "an unknown code": ("/v1/events/replay/", {"code": "BAD_LUCK"}, 400, "LLM_BAD_OUTPUT"),
    "a bad time": ("/v1/events/replay/", {"start_date": "soon"}, 400, "start_date"),
}


@pytest.mark.parametrize(("path", "body", "status", "holds"), BAD.values(), ids=BAD)
async def test_bad_input_is_refused_and_the_refusal_says_what_to_change(
    service: Service, path: str, body: object, status: int, holds: str
) -> None:
    answer = (
        await service.client.post(path, json=body)
        if body is not None
        else (await service.client.post(path))
    )
    assert answer.status_code == status, answer.text
    assert holds in error_of(answer)
