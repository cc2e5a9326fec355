"""Cancel: an event can be cancelled until apply has committed; its lane continues without it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select, text, update

from pipeline.domain.errors import Conflict, LaneLost, ModelUnavailable, NotFound
from pipeline.domain.events import AddOptions, StageName, Status
from pipeline.domain.tenants import ProjectId
from pipeline.domain.usage import Usage
from pipeline.events.service import cancel
from pipeline.ledger.tables import events, lanes
from tests.support.api_service import ADD, LIVES, Service, error_of, serving
from tests.support.engine import GRACE_S, NO_CHANGES, Engine
from tests.support.stack import wait_until
from tests.support.troubled import Troubled

ALONE = AddOptions(metadata={"batch": "of its own"})
BEFORE_APPLY = [StageName.RETRIEVE, StageName.CONSOLIDATE, StageName.APPLY]


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as built:
        yield built


async def call_off(engine: Engine, event_id: UUID) -> None:
    await cancel(
        engine.project.id,
        event_id,
        cancellation=engine.ledger.cancellation,
        dispatcher=engine.hints,
    )


async def statuses(engine: Engine, *ids: UUID) -> list[Status]:
    return [(await engine.event(event_id)).status for event_id in ids]


async def test_a_pending_event_is_cancelled_at_once_and_costs_no_call(engine: Engine) -> None:
    model = Troubled()
    engine.with_model(model)
    event_id = await engine.add("I like jazz.")
    await call_off(engine, event_id)
    event = await engine.event(event_id)
    assert (event.status, event.failure_code) == (Status.CANCELLED, "CANCELLED")
    assert event.completed_at is not None
    await engine.drain()
    assert (model.calls, await engine.texts()) == ([], [])
    assert await engine.lane_state() == "IDLE"


async def test_the_lane_goes_on_with_what_is_behind_and_between(engine: Engine) -> None:
    ids = [await engine.add(f"I like {it}.") for it in ("jazz", "tea", "chess", "rye")]
    await call_off(engine, ids[0])
    await call_off(engine, ids[2])
    await engine.drain()
    assert await statuses(engine, *ids) == ["CANCELLED", "SUCCEEDED", "CANCELLED", "SUCCEEDED"]
    stored = " ".join(await engine.texts())
    assert [it in stored for it in ("jazz", "tea", "chess", "rye")] == [False, True, False, True]


async def test_a_lane_whose_every_event_was_cancelled_rests_and_wakes_again(
    engine: Engine,
) -> None:
    for event_id in [await engine.add("I like jazz."), await engine.add("I like tea.")]:
        await call_off(engine, event_id)
    await engine.drain()
    assert await engine.lane_state() == "IDLE"
    after = await engine.add("I like chess.")
    await engine.drain()
    assert await statuses(engine, after) == ["SUCCEEDED"]


async def test_an_event_added_after_all_before_it_were_cancelled_is_not_left_behind(
    engine: Engine,
) -> None:
    first = await engine.add("I like jazz.")
    hint = engine.hints.waiting.popleft()
    await call_off(engine, first)
    behind = await engine.add("I like tea.")
    engine.hints.waiting.appendleft(hint)
    await engine.drain()
    assert await statuses(engine, first, behind) == ["CANCELLED", "SUCCEEDED"]


@pytest.mark.parametrize("stage", BEFORE_APPLY)
async def test_a_running_event_is_cancelled_and_its_batch_goes_on_with_exact_receipts(
    engine: Engine, stage: StageName
) -> None:
    texts = ("I like jazz.", "I live in Oslo.", "My dog is called Rex.")
    ids = [await engine.add(text) for text in texts]
    await engine.run_until(stage)
    await call_off(engine, ids[1])
    assert await statuses(engine, *ids) == ["PENDING", "CANCELLED", "PENDING"]
    await engine.drain()
    assert await statuses(engine, *ids) == ["SUCCEEDED", "CANCELLED", "SUCCEEDED"]
    assert await engine.outcomes(ids[1]) == []
    for place, word in ((0, "jazz"), (2, "Rex")):
        [(outcome, text)] = await engine.outcomes(ids[place])
        assert (outcome, word in text) == ("ADD", True)
    assert len(await engine.texts()) == 2
    assert await engine.lane_state() == "IDLE"


async def test_no_call_is_spent_on_an_event_after_it_was_cancelled(engine: Engine) -> None:
    model = Troubled()
    engine.with_model(model)
    event_id = await engine.add("I like jazz.")
    await engine.run_until(StageName.APPLY)
    await call_off(engine, event_id)
    await engine.drain()
    assert model.calls == [1]  # only the call before the cancel
    assert await engine.texts() == []


@pytest.mark.parametrize("stage", [StageName.EXTRACT, *BEFORE_APPLY])
async def test_a_stage_that_runs_while_its_event_is_cancelled_can_write_nothing(
    engine: Engine, stage: StageName
) -> None:
    await engine.add("I live in Berlin.")  # so that there is something to decide
    await engine.drain()
    event_id = await engine.add("I moved to Oslo.")
    hint = await engine.run_until(stage)
    engine.hints.waiting.clear()
    lanes = engine.ledger.lanes
    running, batch = await engine.claim(hint)
    assert batch is not None
    await call_off(engine, event_id)
    for effects in (None, NO_CHANGES):
        with pytest.raises(LaneLost):
            await lanes.finish(
                running, StageName.APPLY, output={}, usage=Usage(), ms=1, effects=effects
            )
    with pytest.raises(LaneLost):
        await lanes.halve_batch(running, batch)
    await engine.drain()
    assert await statuses(engine, event_id) == ["CANCELLED"]
    assert await engine.lane_state() == "IDLE"


async def test_cancelling_beside_the_stages_ends_in_all_or_nothing(engine: Engine) -> None:
    """A cancelled event leaves no memory; an event that had already been applied keeps its own."""
    for turn in range(12):
        user = f"user-{turn}"
        event_id = await engine.add("I like jazz.", user_id=user)
        for _ in range(turn % 5):
            await engine.step()
        _, answer = await asyncio.gather(
            engine.step(), call_off(engine, event_id), return_exceptions=True
        )
        await engine.drain()
        event = await engine.event(event_id)
        cancelled = event.status is Status.CANCELLED
        assert isinstance(answer, Conflict) is not cancelled
        assert len(await engine.texts(user)) == len(event.receipt) == int(not cancelled)
        assert await engine.lane_state(user) == "IDLE"


async def test_an_event_that_waits_for_a_provider_can_be_cancelled(engine: Engine) -> None:
    engine.with_model(Troubled(word="jazz", error=ModelUnavailable("503")))
    event_id = await engine.add("I like jazz.")
    behind = await engine.add("I like tea.", options=ALONE)
    await engine.drain()
    assert await engine.lane_state() == "WAITING"
    await call_off(engine, event_id)
    await engine.drain()
    assert await statuses(engine, event_id, behind) == ["CANCELLED", "SUCCEEDED"]


async def test_a_hint_lost_after_a_cancel_is_found_by_the_sweeper(engine: Engine) -> None:
    first, behind = await engine.add("I like jazz."), await engine.add("I like tea.")
    await engine.run_until(StageName.RETRIEVE)
    await call_off(engine, first)
    engine.hints.waiting.clear()
    await engine.pass_time(GRACE_S + 1)
    assert await engine.sweep() == 1
    await engine.drain()
    assert await statuses(engine, first, behind) == ["CANCELLED", "SUCCEEDED"]


async def test_after_apply_it_is_too_late(engine: Engine) -> None:
    event_id = await engine.add("I live in Berlin. My sister Anna lives in Oslo.")
    await engine.run_until(StageName.RELATE)
    with pytest.raises(Conflict, match="memories are stored"):
        await call_off(engine, event_id)
    await engine.drain()
    with pytest.raises(Conflict, match="has ended, SUCCEEDED"):
        await call_off(engine, event_id)
    assert await statuses(engine, event_id) == ["SUCCEEDED"]


async def test_a_second_cancel_changes_nothing(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.")
    await call_off(engine, event_id)
    ended = (await engine.event(event_id)).completed_at
    await call_off(engine, event_id)
    assert (await engine.event(event_id)).completed_at == ended


async def test_only_the_project_of_an_event_can_cancel_it(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.")
    with pytest.raises(NotFound):
        await cancel(
            ProjectId(uuid4()),
            event_id,
            cancellation=engine.ledger.cancellation,
            dispatcher=engine.hints,
        )
    assert await statuses(engine, event_id) == ["PENDING"]


async def test_what_a_cancelled_event_said_is_no_context_of_the_next(engine: Engine) -> None:
    cancelled = await engine.add("I live in Berlin.")
    await call_off(engine, cancelled)
    await engine.drain()
    await engine.add("I like tea.")
    _, batch = await engine.claim(engine.hints.waiting.popleft())
    assert batch is not None
    assert batch.context == []


async def test_clients_see_a_cancelled_event_as_failed_with_its_code(service: Service) -> None:
    accepted = (await service.client.post(ADD, json=LIVES)).json()
    path = f"/v1/event/{accepted['event_id']}/cancel/"
    for _ in range(2):
        answer = await service.client.post(path)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["status"], answer.json()["code"]) == ("FAILED", "CANCELLED")
    failed = (await service.client.get("/v1/events/?status=FAILED")).json()["results"]
    assert [event["id"] for event in failed] == [accepted["event_id"]]
    done = await service.add("I like jazz.")
    late = await service.client.post(f"/v1/event/{done}/cancel/")
    assert late.status_code == 409
    assert "Too late" in error_of(late)


async def test_bad_ids_are_refused_by_name(service: Service) -> None:
    assert (await service.client.post("/v1/event/7/cancel/")).status_code == 400
    unknown = await service.client.post(f"/v1/event/{uuid4()}/cancel/")
    assert unknown.status_code == 404


async def test_an_event_cancelled_under_a_claim_leaves_none_behind_it(engine: Engine) -> None:
    """The claim has read the event as pending, and waits for the lane that the cancel locks."""
    head = await engine.add("I like jazz.")
    behind = await engine.add("I live in Oslo.", options=ALONE)
    async with engine.ledger.engine.connect() as cancelling:
        await cancelling.execute(select(lanes).with_for_update())
        claiming = asyncio.create_task(engine.step())
        await wait_until(lambda: is_blocked(engine), within_s=60, what="the claim at the lane")
        await cancelling.execute(
            update(events)
            .where(events.c.id == head)
            .values(status=Status.CANCELLED, completed_at=func.now())
        )
        await cancelling.commit()
    await claiming
    await engine.drain()
    assert await statuses(engine, head, behind) == [Status.CANCELLED, Status.SUCCEEDED]


async def is_blocked(engine: Engine) -> bool:
    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    async with engine.ledger.engine.connect() as connection:
        return bool(await connection.scalar(waiting))
