"""Idempotency keys: an add that is sent again, at once or later, adds nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from uuid import UUID

import httpx
import pytest

from pipeline.domain.errors import Conflict
from pipeline.domain.events import AddOptions
from pipeline.domain.messages import Message, Role
from tests.support.api_service import ADD, LIVES, Service, error_of, serving
from tests.support.engine import Engine, build_ledger


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as built:
        yield built


async def add(
    engine: Engine, text: str, key: str | None, *, user_id: str = "maya", turn: int = 0
) -> UUID:
    return await engine.send(
        engine.scope(user_id),
        [Message(Role.USER, text)],
        AddOptions(metadata={"turn": turn}),
        key=key,
    )


async def events(engine: Engine) -> int:
    totals = await engine.ledger.balance.totals()
    return totals.pending + totals.running


async def test_a_key_sent_again_gives_the_same_event_and_adds_nothing(engine: Engine) -> None:
    first = await add(engine, "I like jazz.", "k")
    assert await add(engine, "I like jazz.", "k") == first
    await engine.drain()
    assert await add(engine, "I like jazz.", "k") == first  # also after the event has ended
    assert not engine.hints.waiting
    assert await engine.lane_state() == "IDLE"
    assert len(await engine.texts()) == 1


async def test_a_key_sent_twenty_times_at_once_is_one_event(engine: Engine) -> None:
    ids = await asyncio.gather(*(add(engine, "I like jazz.", "k") for _ in range(20)))
    assert len(set(ids)) == 1
    assert await events(engine) == 1
    assert len(engine.hints.waiting) == 1
    await engine.drain()
    assert (await engine.event(ids[0])).status == "SUCCEEDED"


async def test_two_processes_that_get_one_key_at_once_keep_one_event(
    engine: Engine, database_url: str
) -> None:
    other = build_ledger(database_url)
    beside = Engine(other, engine.project, engine.services, engine.vectors, engine.hints)
    for turn in range(10):
        ids = await asyncio.gather(
            *(add(process, "I like jazz.", f"k{turn}") for process in (engine, beside) * 3)
        )
        assert len(set(ids)) == 1
    assert await events(engine) == 10
    await other.close()


async def test_a_group_of_new_and_repeated_adds_numbers_only_the_new_ones(engine: Engine) -> None:
    first = await add(engine, "I like jazz.", "k")
    repeated, *fresh = await asyncio.gather(
        add(engine, "I like jazz.", "k"),
        add(engine, "I like tea.", None),
        add(engine, "I like chess.", "other"),
        add(engine, "I live in Oslo.", None, user_id="jon"),
    )
    assert repeated == first
    await engine.drain()
    for event_id in (first, *fresh):
        assert (await engine.event(event_id)).status == "SUCCEEDED"
    assert await engine.lane_state() == await engine.lane_state("jon") == "IDLE"


async def test_a_key_used_for_another_add_is_refused_by_the_event_it_names(
    engine: Engine,
) -> None:
    first = await add(engine, "I like jazz.", "k")
    for other in (
        add(engine, "I like tea.", "k"),
        add(engine, "I like jazz.", "k", user_id="jon"),
        add(engine, "I like jazz.", "k", turn=1),
    ):
        with pytest.raises(Conflict, match=str(first)):
            await other
    assert await events(engine) == 1


async def test_of_two_bodies_that_bring_one_key_at_once_one_is_kept_and_one_refused(
    engine: Engine,
) -> None:
    answers = await asyncio.gather(
        *(add(engine, f"I like {it}.", "k") for it in ("jazz", "tea")), return_exceptions=True
    )
    assert sorted(isinstance(answer, Conflict) for answer in answers) == [False, True]
    assert await events(engine) == 1


async def test_projects_do_not_share_their_keys(engine: Engine) -> None:
    other = await Engine.create(engine.ledger)
    ids = await asyncio.gather(add(engine, "I like jazz.", "k"), add(other, "I like tea.", "k"))
    assert len(set(ids)) == 2


@pytest.mark.parametrize("path", [ADD, "/v1/memories/"])
async def test_both_add_routes_know_the_key(service: Service, path: str) -> None:
    async def sent(body: Mapping[str, object], key: str = "turn-1") -> httpx.Response:
        return await service.client.post(path, json=body, headers={"Idempotency-Key": key})

    first, again = await sent(LIVES), await sent(LIVES)
    assert first.json() == again.json()
    # The same request in another form: the spelling of the JSON does not matter.
    spelled = {"user_id": "maya", "messages": [{"role": "user", "content": LIVES["messages"]}]}
    assert (await sent(spelled)).json() == first.json()
    other = await sent(LIVES | {"metadata": {"n": 1}})
    assert other.status_code == 409
    assert "used for another add" in error_of(other)
    assert (await sent(LIVES | {"metadata": {"n": 1}}, "turn-2")).status_code == 200
    listed = (await service.client.get("/v1/events/")).json()
    assert listed["count"] == 2


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_a_key_that_is_empty_or_endless_is_refused(service: Service, key: str) -> None:
    answer = await service.client.post(ADD, json=LIVES, headers={"Idempotency-Key": key})
    assert answer.status_code == 400
    assert "idempotency-key" in error_of(answer)
