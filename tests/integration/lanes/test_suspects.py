"""Crashes are charged to the event that causes them, not to events in progress beside it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import uuid4

import pytest
from sqlalchemy import text

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import LaneLost, ModelUnavailable
from pipeline.domain.events import AddOptions, StageName, Status
from pipeline.domain.facts import Fact
from pipeline.domain.lanes import Activation, Hint
from pipeline.domain.usage import Answer, Usage
from pipeline.ingest.runner import run_stage
from pipeline.lanes.store import SHARED_ATTEMPTS, Ending
from pipeline.ports import ExtractionRequest
from tests.support.engine import LEASE_S, NO_CHANGES, Engine
from workers.runtime import Heartbeat


async def crash(engine: Engine, *hints: Hint) -> None:
    """A worker claims these lanes, charges an attempt to each suspect, and dies."""
    for hint in hints:
        engine.hints.waiting.remove(hint)
        activation, _ = await engine.claim(hint)
        if not activation.counted:
            await engine.ledger.lanes.count_suspect_attempt(activation)
    await expire(engine)


async def expire(engine: Engine) -> None:
    await engine.pass_time(LEASE_S + 1)
    await engine.sweep()


async def test_an_event_that_kills_five_workers_alone_is_put_aside(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.")
    after = await engine.add("I like chess.", options=AddOptions(metadata={"own": "batch"}))
    for _ in range(SHARED_ATTEMPTS + engine.services.max_attempts):
        await crash(engine, engine.hints.waiting[0])
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.failure_code) == (Status.FAILED, "POISON_CRASH")
    assert (await engine.event(after)).status is Status.SUCCEEDED


async def test_a_suspect_that_still_waits_for_its_turn_makes_no_attempt(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.")
    for _ in range(SHARED_ATTEMPTS + 3 * engine.services.max_attempts):
        await engine.claim(engine.hints.waiting.popleft())
        await expire(engine)
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED


@dataclass
class Beside(RulesModel):
    """Rules that count concurrent calls."""

    calls: int = 0
    now: int = 0
    most: int = 0

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        self.calls += 1
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(20):  # turns of the event loop
            await asyncio.sleep(0)
        self.now -= 1
        return await super().extract(request)


async def test_suspects_are_worked_on_one_at_a_time(engine: Engine) -> None:
    users = [f"u{n}" for n in range(4)]
    for user in users:
        await engine.add("I like jazz.", user_id=user)
    for _ in range(SHARED_ATTEMPTS):
        await crash(engine, *engine.hints.waiting)
    beside = Beside()
    engine.with_model(beside)
    leases = Heartbeat(engine.ledger.leases, lease_s=LEASE_S)
    await asyncio.gather(
        *(
            run_stage(hint, owner=engine.worker, services=engine.services, leases=leases)
            for hint in engine.hints.waiting
        )
    )
    assert (beside.calls, beside.most) == (len(users), 1)


async def test_a_suspects_batch_is_tried_event_by_event(engine: Engine) -> None:
    texts = ["I like jazz.", "I like chess.", "I like tea."]
    ids = [await engine.add(text) for text in texts]
    for _ in range(SHARED_ATTEMPTS):
        await crash(engine, engine.hints.waiting[0])
    await engine.step()  # splits the batch
    activation, batch = await engine.claim(engine.hints.waiting.popleft())
    assert batch is not None
    assert [event.id for event in batch.events] == ids[:1]
    assert not activation.counted
    hint = await engine.ledger.lanes.release_lane(activation)
    assert hint is not None
    engine.hints.waiting.append(hint)
    await engine.drain()
    assert {(await engine.event(event_id)).status for event_id in ids} == {Status.SUCCEEDED}


async def test_a_worker_that_lost_its_lease_and_lives_has_not_crashed(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.")
    for _ in range(3 * (SHARED_ATTEMPTS + engine.services.max_attempts)):
        activation, _ = await engine.claim(engine.hints.waiting.popleft())
        if not activation.counted:
            activation = await engine.ledger.lanes.count_suspect_attempt(activation)
        await expire(engine)
        # the lane is no longer its own
        assert await engine.ledger.lanes.release_lane(activation) is None
    again, _ = await engine.claim(engine.hints.waiting[0])
    assert (again.attempts, again.counted) == (1, True)
    hint = await engine.ledger.lanes.release_lane(again)
    assert hint is not None
    engine.hints.waiting[0] = hint
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED


async def test_a_stage_that_loses_its_lane_gives_the_attempt_back(engine: Engine) -> None:
    class Slow(RulesModel):
        async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
            await expire(engine)
            return await super().extract(request)

    await engine.add("I like jazz.")
    engine.with_model(Slow())
    await engine.step()
    again, _ = await engine.claim(engine.hints.waiting[0])
    assert again.attempts == 1


async def test_a_lost_lane_gives_nothing_back_of_a_stage_that_has_ended(engine: Engine) -> None:
    await engine.add("I like jazz.")
    slow, _ = await engine.claim(engine.hints.waiting.popleft())
    await expire(engine)
    await engine.step()  # another worker finishes the stage
    await engine.claim(engine.hints.waiting.popleft())
    assert await engine.ledger.lanes.release_lane(slow) is None
    await expire(engine)
    again, _ = await engine.claim(engine.hints.waiting[0])
    assert again.attempts == 2


async def keep_going(engine: Engine) -> Activation:
    """Finish extract and keep the lane for retrieve; return the activation of extract."""
    activation, _ = await engine.claim(engine.hints.waiting.popleft())
    extracted: dict[str, object] = {"facts": [], "note": None, "answer": None}
    await engine.ledger.lanes.finish_and_keep(
        activation, StageName.RETRIEVE, output=extracted, usage=Usage(), ms=1
    )
    return activation


async def test_a_crash_in_a_stage_that_follows_at_once_is_charged_to_that_stage(
    engine: Engine,
) -> None:
    await engine.add("I like jazz.")
    await keep_going(engine)
    await expire(engine)
    [hint] = engine.hints.waiting
    again, _ = await engine.claim(hint)
    assert (again.stage, again.attempts, again.counted) == (StageName.RETRIEVE, 2, True)


async def test_a_lane_handed_back_after_an_unseen_commit_charges_the_next_stage_nothing(
    engine: Engine,
) -> None:
    await engine.add("I like jazz.")
    await engine.claim(engine.hints.waiting.popleft())
    await expire(engine)  # the first attempt of extract has ended with its worker
    extract = await keep_going(engine)
    hint = await engine.ledger.lanes.release_lane(extract)
    assert hint is not None
    again, _ = await engine.claim(hint)
    assert (again.stage, again.attempts) == (StageName.RETRIEVE, 1)


LOSE_THE_CLAIM = (
    "UPDATE lanes SET state = 'QUEUED', owner = NULL, batch_id = NULL, attempts = 0,"
    " fence = fence - 1 WHERE id = :lane",
    "UPDATE events SET status = 'PENDING', batch_id = NULL WHERE lane_id = :lane",
)


async def test_a_worker_from_before_a_failover_is_refused_though_its_fence_is_right(
    engine: Engine,
) -> None:
    """After a failover to a standby that lagged, the same fence can be given out twice."""
    await engine.add("I like jazz.")
    hint = engine.hints.waiting.popleft()
    lanes = engine.ledger.lanes
    old, batch = await engine.claim(hint)
    assert batch is not None
    async with engine.ledger.engine.begin() as connection:
        for statement in LOSE_THE_CLAIM:
            await connection.execute(text(statement), {"lane": hint.lane_id})
    engine.worker = uuid4()
    new, _ = await engine.claim(hint)
    assert new.fence == old.fence
    for effects in (None, NO_CHANGES):
        with pytest.raises(LaneLost):
            await lanes.finish(
                old, StageName.RETRIEVE, output={}, usage=Usage(), ms=1, effects=effects
            )
    with pytest.raises(LaneLost):
        await lanes.settle(old, batch, Ending(Status.SUCCEEDED))
    with pytest.raises(LaneLost):
        await lanes.wait(old, ModelUnavailable.code, delay_s=1)
    with pytest.raises(LaneLost):
        await lanes.halve_batch(old, batch)
    with pytest.raises(LaneLost):
        await lanes.end_cancelled(old)
    with pytest.raises(LaneLost):
        await lanes.count_suspect_attempt(old)
    assert await lanes.release_lane(old) is None
    assert await engine.lane_state() == "RUNNING"
    assert await lanes.finish(new, StageName.RETRIEVE, output={}, usage=Usage(), ms=1)
