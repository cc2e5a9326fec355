"""The lane state machine on a real PostgreSQL: order, fences, recovery. Tests run the hints."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy import delete, func, select

from pipeline.domain.errors import ProjectGone
from pipeline.domain.events import AddOptions, EventType, StageName, Status
from pipeline.domain.filters import parse
from pipeline.erasure.store import OwnerKey
from pipeline.ledger.tables import lanes as lane_rows
from pipeline.ledger.tables import projects
from pipeline.memories.delete_by_filter import DeleteRequest
from tests.support.engine import LEASE_S, Engine


async def test_an_add_goes_through_every_stage_and_ends_with_a_receipt(engine: Engine) -> None:
    await engine.add("I live in Berlin.")  # so that there is something to decide
    await engine.drain()
    event_id = await engine.add("I moved to Oslo. I am allergic to peanuts.")
    assert (await engine.event(event_id)).status is Status.PENDING
    await engine.drain()
    event = await engine.event(event_id)
    assert event.status is Status.SUCCEEDED
    assert [run.stage for run in event.stages] == [
        "extract",
        "retrieve",
        "consolidate",
        "apply",
        "relate",
    ]
    assert {line.outcome for line in event.receipt} == {"ADD", "UPDATE"}
    assert all(line.reason and line.memory_id for line in event.receipt)
    assert await engine.lane_state() == "IDLE"


async def test_only_the_first_of_two_events_wakes_the_lane(engine: Engine) -> None:
    await engine.add("I like jazz.")
    await engine.add("I like chess.")
    assert len(engine.hints.waiting) == 1


async def test_the_hint_after_a_stage_names_the_project(engine: Engine) -> None:
    """Its queue follows the busy lanes of the project."""
    await engine.add("I like jazz.")
    await engine.run_until(StageName.RELATE)
    assert [hint.project_id for hint in engine.hints.waiting] == [engine.project.id]


async def test_events_that_pile_up_share_a_batch_and_keep_their_own_receipts(
    engine: Engine,
) -> None:
    first = await engine.add("I like jazz.")
    second = await engine.add("I live in Oslo.")
    await engine.drain()
    for event_id, word in ((first, "jazz"), (second, "Oslo")):
        event = await engine.event(event_id)
        assert event.batch_events == 2
        assert [word in line.text for line in event.receipt] == [True]


async def test_events_with_other_options_never_share_a_batch(engine: Engine) -> None:
    await engine.add("I like jazz.")
    other = await engine.add("I like chess.", options=AddOptions(metadata={"channel": "web"}))
    await engine.drain()
    assert (await engine.event(other)).batch_events == 1


async def test_an_event_accepted_while_the_lane_works_is_done_next(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    await engine.run_until(StageName.RELATE)
    late = await engine.add("I moved to Oslo.")
    assert len(engine.hints.waiting) == 1  # the lane is awake: no second hint
    await engine.drain()
    assert await engine.outcomes(late) == [("UPDATE", (await engine.texts())[0])]
    assert "Oslo" in (await engine.texts())[0]


async def test_a_doubled_hint_does_nothing(engine: Engine) -> None:
    await engine.add("I like jazz.")
    hint = engine.hints.waiting[0]
    await engine.step()
    assert await engine.run(hint) is None
    await engine.drain()
    assert len(await engine.texts()) == 1


async def test_hints_run_at_the_same_moment_give_one_activation(engine: Engine) -> None:
    await engine.add("I like jazz.")
    hint = engine.hints.waiting.popleft()
    following = await asyncio.gather(*(engine.run(hint) for _ in range(5)))
    assert len([hint for hint in following if hint]) == 1


@pytest.mark.parametrize("stage", list(StageName))
async def test_a_worker_that_dies_in_any_stage_is_replaced_and_nothing_is_done_twice(
    engine: Engine, stage: StageName
) -> None:
    await engine.add("I live in Berlin.")  # so that there is something to decide
    await engine.drain()
    event_id = await engine.add("I moved to Rome. My sister Anna lives in Oslo.")
    hint = await engine.run_until(stage)
    engine.hints.waiting.clear()
    await engine.claim(hint)  # the worker dies without a trace
    assert await engine.sweep() == 0  # the lease has not expired
    await engine.pass_time(LEASE_S + 1)
    assert await engine.sweep() == 1
    await engine.drain()
    event = await engine.event(event_id)
    assert event.status is Status.SUCCEEDED
    assert sorted(await engine.texts()) == sorted({line.text for line in event.receipt})
    assert len(await engine.history_rows()) == 1 + len(event.receipt)


async def test_scopes_run_beside_each_other(engine: Engine) -> None:
    await engine.add("I live in Berlin.", user_id="maya")
    await engine.add("I live in Oslo.", user_id="jon")
    await engine.step()
    await engine.step()
    assert {hint.stage for hint in engine.hints.waiting} == {StageName.RETRIEVE}
    await engine.drain()
    assert len(await engine.texts("maya")) == len(await engine.texts("jon")) == 1


async def test_a_project_that_is_deleted_accepts_nothing_more(engine: Engine) -> None:
    """An API process may still have its key in the cache for some seconds."""
    ledger = engine.ledger
    gone = await ledger.projects.add(engine.project.organization_id, "gone")
    late = replace(engine, project=gone)
    await ledger.project_deletion.remove(gone)
    bystander = asyncio.create_task(engine.add("I live in Oslo."))
    with pytest.raises(ProjectGone):
        await late.add("I live in Zanzibar.")
    await bystander
    with pytest.raises(ProjectGone):
        await ledger.erasures.erase(gone.id, OwnerKey("user", "maya"))
    request = DeleteRequest(EventType.DELETE_ALL, parse({"user_id": "maya"}), {})
    with pytest.raises(ProjectGone):
        await ledger.clearing.clear(gone.id, request)
    assert not await rows_of(late)


async def test_an_add_waits_for_a_project_that_is_being_deleted(engine: Engine) -> None:
    ledger = engine.ledger
    gone = await ledger.projects.add(engine.project.organization_id, "gone")
    late = replace(engine, project=gone)
    async with ledger.engine.begin() as connection:
        await connection.execute(delete(projects).where(projects.c.id == gone.id))
        adding = asyncio.create_task(late.add("I live in Zanzibar."))
        await engine.add("I live in Oslo.")
        assert not adding.done()
    with pytest.raises(ProjectGone):
        await adding
    assert not await rows_of(late)


async def rows_of(engine: Engine) -> int:
    query = select(func.count()).where(lane_rows.c.project_id == engine.project.id)
    async with engine.ledger.engine.connect() as connection:
        return int((await connection.execute(query)).scalar_one())
