"""Gathering: turns of a project wait for each other, and nothing else about them changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

import pytest

from api.events import responses as event_responses
from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import AddOptions, Status
from pipeline.domain.facts import Fact
from pipeline.domain.lanes import GATHERING
from pipeline.domain.usage import Answer
from pipeline.events.service import replay
from pipeline.ledger.tables import metadata
from pipeline.ports import ExtractionRequest
from pipeline.stores import Ledger
from tests.support.api_service import ADD, MAYA, Service, serving
from tests.support.engine import LEASE_S, Engine

LIMITS = {"messages": 3, "tokens": 1_000, "seconds": 60.0}
SCHOOL = "My daughter Lena starts primary school in August, and Lena loves her new teacher."
CAR = "Our old red car made strange noises on the motorway near Basel this morning."


class Reading(RulesModel):
    """Rules that record the messages of each call."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[list[str]] = []

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        self.read.append([sourced.message.content for sourced in request.messages])
        return await super().extract(request)


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


@pytest.fixture
async def model(service: Service) -> Reading:
    reading = Reading()
    service.engine.with_model(reading)
    await change(service.engine, gather=LIMITS)
    return reading


async def change(engine: Engine, **columns: Any) -> None:
    await engine.ledger.projects.change(engine.project.id, columns, {})


async def say(engine: Engine, text: str, **options: Any) -> UUID:
    event_id = await engine.add(text, options=AddOptions(**options))
    await engine.drain()
    return event_id


async def statuses(engine: Engine, ids: Sequence[UUID]) -> list[Status]:
    return [(await engine.event(event_id)).status for event_id in ids]


async def end_of_time(engine: Engine) -> None:
    """Let the time of gathering pass, and sweep."""
    await engine.pass_time(LIMITS["seconds"])
    await engine.age(LIMITS["seconds"])
    await engine.sweep()
    await engine.drain()


async def test_turns_wait_with_the_reason_and_run_together(
    service: Service, model: Reading
) -> None:
    engine = service.engine
    ids = [await say(engine, "I live in Bern.")]
    shown = event_responses.event(await engine.event(ids[0]))
    assert (shown["status"], shown["stage"]) == (Status.PENDING, None)
    assert shown["waiting"] is not None
    assert shown["waiting"]["code"] == GATHERING
    assert shown["waiting"]["until"] is not None
    [progress] = (await engine.ledger.events.progress(ids)).values()
    assert (progress.status, progress.wait_code) == (Status.PENDING, GATHERING)
    ids.append(await say(engine, "I work at Bosch."))
    assert await statuses(engine, ids) == [Status.PENDING] * 2
    assert model.read == []
    ids.append(await say(engine, "I like tea."))
    assert await statuses(engine, ids) == [Status.SUCCEEDED] * 3
    assert model.read == [["I live in Bern.", "I work at Bosch.", "I like tea."]]
    assert (await engine.event(ids[0])).wait_code is None
    assert await engine.lane_state() == "IDLE"


async def test_they_run_when_the_time_is_over(service: Service, model: Reading) -> None:
    engine = service.engine
    ids = [await say(engine, "I live in Bern."), await say(engine, "I like tea.")]
    await engine.sweep()
    await engine.drain()
    assert await statuses(engine, ids) == [Status.PENDING] * 2
    await end_of_time(engine)
    assert await statuses(engine, ids) == [Status.SUCCEEDED] * 2
    assert len(model.read) == 1


async def test_a_new_topic_runs_the_turns_before_it_and_waits_itself(
    service: Service, model: Reading
) -> None:
    engine = service.engine
    school, car = await say(engine, SCHOOL), await say(engine, CAR)
    assert await statuses(engine, [school, car]) == [Status.SUCCEEDED, Status.PENDING]
    assert model.read == [[SCHOOL]]
    await end_of_time(engine)
    assert model.read == [[SCHOOL], [CAR]]
    assert await statuses(engine, [school, car]) == [Status.SUCCEEDED] * 2


async def test_an_add_of_another_kind_does_not_wait(service: Service, model: Reading) -> None:
    engine = service.engine
    turn = await say(engine, "I live in Bern.")
    verbatim = await say(engine, "I like tea.", infer=False)
    assert await statuses(engine, [turn, verbatim]) == [Status.SUCCEEDED] * 2
    assert model.read == [["I live in Bern."]]


async def test_an_add_during_the_check_is_not_left_waiting(
    service: Service, model: Reading
) -> None:
    engine = service.engine
    first = await engine.add("I live in Bern.")
    activation, batch = await engine.claim(engine.hints.waiting.popleft())
    assert batch is not None
    second = await engine.add("I like tea.")
    assert not engine.hints.waiting  # the lane is busy: the worker goes on with the queue
    hint = await engine.ledger.lanes.gather(activation, batch, delay_s=60.0)
    assert hint is not None
    assert await statuses(engine, [first, second]) == [Status.PENDING] * 2
    assert await engine.lane_state() == "QUEUED"


async def test_a_cancelled_turn_leaves_the_others_waiting(service: Service, model: Reading) -> None:
    engine = service.engine
    gone, left = await say(engine, "I live in Bern."), await say(engine, "I like tea.")
    answer = await service.client.post(f"/v1/event/{gone}/cancel/")
    assert answer.status_code == 200, answer.text
    await engine.drain()
    assert await statuses(engine, [gone, left]) == [Status.CANCELLED, Status.PENDING]
    await end_of_time(engine)
    assert model.read == [["I like tea."]]


async def test_all_of_them_cancelled_leave_an_idle_lane(service: Service, model: Reading) -> None:
    engine = service.engine
    only = await say(engine, "I live in Bern.")
    await service.client.post(f"/v1/event/{only}/cancel/")
    await end_of_time(engine)
    assert await engine.lane_state() == "IDLE"
    assert model.read == []


async def test_a_replayed_turn_gathers_no_more(service: Service, model: Reading) -> None:
    engine = service.engine
    only = await say(engine, "I live in Bern.")
    await service.client.post(f"/v1/event/{only}/cancel/")
    await service.client.post(f"/v1/event/{only}/replay/")
    await end_of_time(engine)
    assert await statuses(engine, [only]) == [Status.SUCCEEDED]


async def test_a_replayed_event_does_not_wait_behind_turns_that_gather(
    service: Service, model: Reading
) -> None:
    engine = service.engine
    again = await engine.add(CAR)
    await engine.ledger.cancellation.cancel(engine.project.id, again)
    engine.hints.waiting.clear()
    await engine.pass_time(LIMITS["seconds"])
    await engine.sweep()
    await engine.drain()
    waiting = await say(engine, SCHOOL)
    assert await statuses(engine, [waiting]) == [Status.PENDING]
    await replay(
        engine.project.id,
        again,
        instructions={},
        dead_letters=engine.ledger.dead_letters,
        dispatcher=engine.hints,
    )
    await engine.drain()
    assert await statuses(engine, [waiting, again]) == [Status.SUCCEEDED] * 2


async def test_gathering_that_is_switched_off_lets_the_turns_run(
    service: Service, model: Reading
) -> None:
    waiting = await say(service.engine, SCHOOL)
    await change(service.engine, gather=None)
    assert await service.engine.sweep() == 1
    await service.engine.drain()
    assert await statuses(service.engine, [waiting]) == [Status.SUCCEEDED]


async def test_a_deletion_of_the_scope_cancels_them(service: Service, model: Reading) -> None:
    engine = service.engine
    only = await say(engine, "I live in Bern.")
    assert (await service.client.delete("/v1/memories/", params=MAYA)).status_code == 200
    await engine.drain()
    await end_of_time(engine)
    assert await statuses(engine, [only]) == [Status.CANCELLED]
    assert await engine.texts() == []
    assert await engine.lane_state() == "IDLE"


async def test_an_erasure_leaves_nothing_of_them(service: Service, model: Reading) -> None:
    engine = service.engine
    await say(engine, "I live in Bern.")
    await service.client.delete("/v2/entities/user/maya/")
    await end_of_time(engine)
    async with engine.ledger.engine.connect() as connection:
        assert (await connection.execute(metadata.tables["messages"].select())).all() == []
    assert model.read == []


@pytest.mark.parametrize("dies", ["during the check", "after it was cut"])
async def test_a_killed_worker_loses_nothing(service: Service, model: Reading, dies: str) -> None:
    engine = service.engine
    ids = [await say(engine, SCHOOL), await engine.add(CAR)]
    activation, batch = await engine.claim(engine.hints.waiting.popleft())
    assert batch is not None
    if dies == "after it was cut":
        await engine.ledger.lanes.shorten_batch(activation, batch, 1)
    await engine.pass_time(LEASE_S)
    assert await engine.sweep() == 1
    await engine.drain()
    await end_of_time(engine)
    assert await statuses(engine, ids) == [Status.SUCCEEDED] * 2
    assert model.read == [[SCHOOL], [CAR]]


async def test_the_option_is_set_and_cleared_by_the_project(
    service: Service, model: Reading
) -> None:
    project = service.engine.project
    path = f"/api/v1/orgs/organizations/{project.organization_id}/projects/{project.id}/"
    for given, shown in (
        (True, {"messages": 12, "tokens": 1_000, "seconds": 60.0}),
        ({"seconds": 5}, {"messages": 12, "tokens": 1_000, "seconds": 5.0}),
        (False, None),
        ({"messages": 4}, {"messages": 4, "tokens": 1_000, "seconds": 60.0}),
        (None, None),
    ):
        changed = await service.client.patch(path, json={"gather": given})
        assert changed.status_code == 200, changed.text
        assert (await service.client.get(path)).json()["gather"] == shown
    refused = await service.client.patch(path, json={"gather": {"seconds": 0}})
    assert refused.status_code == 400
    added = await service.client.post(ADD, json={"messages": "I like tea.", **MAYA})
    await service.engine.drain()
    assert await statuses(service.engine, [UUID(added.json()["event_id"])]) == [Status.SUCCEEDED]
