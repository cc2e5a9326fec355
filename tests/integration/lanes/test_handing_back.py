"""Lanes that a worker hands back: at its stop, or because it lost the ledger."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import StageName, Status
from pipeline.domain.facts import Fact
from pipeline.domain.graph.values import GraphChanges, GraphStatus
from pipeline.domain.stage_outputs import Related, dump
from pipeline.domain.usage import Answer, Usage
from pipeline.lanes.store import Lanes
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.ports import ExtractionRequest
from tests.support.engine import GRACE_S, LEASE_S, Engine
from tests.support.stack import wait_until

END_WAITING_SESSIONS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest.mark.parametrize("stage", [StageName.EXTRACT, StageName.APPLY, StageName.RELATE])
async def test_a_worker_that_stops_hands_its_lane_back_and_it_costs_no_attempt(
    engine: Engine, stage: StageName
) -> None:
    event_id = await engine.add("I live in Berlin.")
    hint = await engine.run_until(stage)
    for _ in range(engine.services.max_attempts + 1):  # more often than a crash is allowed
        activation, _ = await engine.claim(hint)
        back = await engine.ledger.lanes.release_lane(activation)
        assert back is not None
        assert (back.stage, back.fence) == (stage, activation.fence + 1)
        hint = back
    engine.hints.waiting[0] = hint
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED
    assert len(await engine.texts()) == 1


async def test_a_lane_handed_back_before_it_is_settled_is_settled_by_the_next_worker(
    engine: Engine,
) -> None:
    event_id = await engine.add("I live in Berlin.")
    lanes = engine.ledger.lanes
    activation, batch = await engine.claim(await engine.run_until(StageName.RELATE))
    assert batch is not None
    related = dump(Related(GraphStatus.SUCCEEDED, GraphChanges()))
    await lanes.finish(activation, None, output=related, usage=Usage(), ms=1)
    back = await lanes.release_lane(activation)
    assert back is not None
    engine.hints.waiting[0] = back
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED
    assert len(await engine.history_rows()) == 1


async def test_a_stage_cut_off_in_the_middle_is_handed_back_by_the_stage_runner(
    engine: Engine,
) -> None:
    called = asyncio.Event()

    class Hanging(RulesModel):
        async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
            called.set()
            await asyncio.Event().wait()
            raise AssertionError

    engine.with_model(Hanging())
    event_id = await engine.add("I like jazz.")
    work = asyncio.create_task(engine.step())
    await called.wait()
    work.cancel()
    hint = await work
    assert hint is not None
    assert await engine.lane_state() == "QUEUED"
    engine.with_model(RulesModel())
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED


async def test_a_stage_that_loses_the_ledger_hands_its_lane_back_and_costs_no_attempt(
    engine: Engine,
) -> None:
    called, answer = asyncio.Event(), asyncio.Event()

    class BlockedModel(RulesModel):
        async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
            called.set()
            await answer.wait()
            return await super().extract(request)

    engine.with_model(BlockedModel())
    event_id = await engine.add("I like jazz.")
    work = asyncio.create_task(engine.step())
    await called.wait()

    async def ended() -> bool:
        async with engine.ledger.engine.connect() as connection:
            return bool((await connection.execute(text(END_WAITING_SESSIONS))).all())

    async with engine.ledger.engine.connect() as other:
        # The commit of the stage waits for this lock; then its connection breaks.
        await other.execute(text("SELECT FROM lanes FOR UPDATE"))
        answer.set()
        await wait_until(ended, within_s=60, what="a session that waits for the lane is ended")
    hint = await work
    assert hint is not None
    assert await engine.lane_state() == "QUEUED"
    activation, _ = await engine.claim(hint)
    assert activation.attempts == 1
    again = await engine.ledger.lanes.release_lane(activation)
    assert again is not None
    engine.hints.waiting[0] = again
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED
    assert len(await engine.texts()) == 1


async def test_a_lane_that_another_worker_has_claimed_is_not_handed_back(engine: Engine) -> None:
    await engine.add("I like jazz.")
    lanes = engine.ledger.lanes
    slow, _ = await engine.claim(engine.hints.waiting.popleft())
    await engine.pass_time(LEASE_S + 1)
    await engine.sweep()
    await engine.claim(engine.hints.waiting[0])
    assert await lanes.release_lane(slow) is None
    assert await engine.lane_state() == "RUNNING"


async def test_a_lane_in_a_stage_of_a_later_release_is_left_to_that_release(
    engine: Engine,
) -> None:
    await engine.add("I like jazz.", user_id="later")
    await engine.add("I like jazz.", user_id="now")
    engine.hints.waiting.clear()
    lane = {"lane": engine.scope("later").lane_id}
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(
            text("UPDATE lanes SET stage = 'summarise' WHERE id = :lane"), lane
        )
    await engine.pass_time(GRACE_S + 1)
    assert await engine.sweep() == 1
    assert engine.hints.waiting[0].lane_id == engine.scope("now").lane_id


@pytest.mark.parametrize("state", ["57014", "55P03"])
async def test_a_lane_whose_statement_ran_out_of_time_is_handed_back(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """The same holds if the statement that parks the lane times out."""
    event = await engine.add("I live in Berlin.")
    refusal = type("Refusal", (Exception,), {"sqlstate": state})()

    async def out_of_time(*_: object, **__: object) -> None:
        raise LedgerUnavailable(refusal, reached=True)

    with monkeypatch.context() as slow:
        slow.setattr(Lanes, "finish", out_of_time)
        slow.setattr(Lanes, "wait", out_of_time)
        assert await engine.step() is not None
    assert await engine.lane_state() == "QUEUED"
    await engine.drain()
    assert (await engine.event(event)).status is Status.SUCCEEDED
