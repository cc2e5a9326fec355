"""Leases of running lanes: renewed by heartbeats, taken over from dead workers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast
from uuid import uuid4

import pytest
from sqlalchemy import select, text

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import LaneLost, ModelUnavailable
from pipeline.domain.events import StageName, Status
from pipeline.domain.facts import Fact
from pipeline.domain.lanes import Hint, Hold
from pipeline.domain.usage import Answer, Usage
from pipeline.ingest.runner import run_stage
from pipeline.lanes import due
from pipeline.lanes.leases import BEATS, LaneLeases, session_name
from pipeline.lanes.store import Ending
from pipeline.ledger.engine import connect
from pipeline.ledger.statements import Direct
from pipeline.ledger.tables import lanes
from pipeline.ports import ExtractionRequest
from tests.support.engine import GRACE_S, LEASE_S, NO_CHANGES, Engine, NoLeases, locked
from tests.support.stack import wait_until
from workers.runtime import Heartbeat

WITHIN_S = 60.0


async def test_a_zombie_can_neither_finish_nor_apply_nor_settle(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    hint = await engine.run_until(StageName.APPLY)
    moves = engine.ledger.lanes
    zombie, batch = await engine.claim(hint)
    assert batch is not None
    await engine.pass_time(LEASE_S + 1)
    engine.hints.waiting.clear()
    await engine.sweep()
    for effects in (None, NO_CHANGES):
        with pytest.raises(LaneLost):
            await moves.finish(
                zombie, StageName.RELATE, output={}, usage=Usage(), ms=1, effects=effects
            )
    with pytest.raises(LaneLost):
        await moves.settle(zombie, batch, Ending(Status.SUCCEEDED))
    with pytest.raises(LaneLost):
        await moves.wait(zombie, ModelUnavailable.code, delay_s=1)
    with pytest.raises(LaneLost):
        await moves.halve_batch(zombie, batch)
    assert await engine.texts() == []
    await engine.drain()
    assert len(await engine.texts()) == 1


@dataclass
class SlowModel(RulesModel):
    """Loses the lane's lease while it extracts."""

    engine: Engine

    def __post_init__(self) -> None:
        super().__init__()

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        await self.engine.pass_time(LEASE_S + 1)
        await self.engine.sweep()
        return await super().extract(request)


class Blocking(NoLeases):
    def blocked(self) -> bool:
        return True


@pytest.mark.parametrize(("leases", "attempts"), [(Blocking(), 1), (NoLeases(), 0)])
async def test_a_lost_lease_counts_as_an_attempt_if_the_stage_blocked_the_loop(
    engine: Engine, leases: NoLeases, attempts: int
) -> None:
    await engine.add("I live in Berlin.")
    engine.with_model(SlowModel(engine))
    hint = engine.hints.waiting.popleft()
    lost = await run_stage(hint, owner=engine.worker, services=engine.services, leases=leases)
    assert lost is None
    async with engine.ledger.engine.connect() as connection:
        assert await connection.scalar(select(lanes.c.attempts)) == attempts


async def test_a_heartbeat_keeps_a_lease_and_cannot_revive_a_lost_one(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    leases = engine.ledger.leases
    activation, _ = await engine.claim(engine.hints.waiting.popleft())
    await engine.pass_time(LEASE_S * 0.7)
    await leases.renew([activation.hold])
    await engine.pass_time(LEASE_S * 0.7)
    assert await engine.sweep() == 0
    await engine.pass_time(LEASE_S)
    assert await engine.sweep() == 1
    await leases.renew([activation.hold])
    await engine.pass_time(GRACE_S + 1)
    assert await engine.sweep() == 1  # still queued, so due again


async def test_a_heartbeat_passes_over_a_lane_that_is_locked(engine: Engine) -> None:
    """An undo or an erasure locks one scope's row; the leases of all other lanes are renewed."""
    holds = []
    for user in ("maya", "locked", "noor"):
        await engine.add("I live in Berlin.", user_id=user)
        activation, _ = await engine.claim(engine.hints.waiting.popleft())
        holds.append(activation.hold)
    await engine.pass_time(LEASE_S * 0.7)
    leases = engine.ledger.leases
    async with locked(engine, "locked"), asyncio.timeout(WITHIN_S):
        assert await leases.renew(holds) == {holds[0], holds[2]}
    assert await leases.renew(holds[1:2]) == {holds[1]}
    await engine.pass_time(LEASE_S * 0.7)
    assert await engine.sweep() == 0


@dataclass
class Renewals:
    """Records the lanes that each heartbeat renewed."""

    leases: LaneLeases
    results: list[set[Hold]] = field(default_factory=list)

    async def renew(self, holds: Sequence[Hold]) -> set[Hold]:
        self.results.append(await self.leases.renew(holds))
        return self.results[-1]


async def test_the_lease_of_a_lane_that_was_locked_is_renewed_before_the_next_beat(
    engine: Engine,
) -> None:
    await engine.add("I live in Berlin.")
    activation, _ = await engine.claim(engine.hints.waiting.popleft())
    renewals = Renewals(engine.ledger.leases)
    heartbeat = Heartbeat(cast("LaneLeases", renewals), lease_s=BEATS * 3 * WITHIN_S)

    async def tried() -> bool:
        return len(renewals.results) > 1

    async def renewed() -> bool:
        return renewals.results[-1] == {activation.hold}

    with heartbeat.keep_renewed(activation):
        async with locked(engine, "maya"):
            beating = asyncio.create_task(heartbeat.beat())
            await wait_until(tried, within_s=WITHIN_S, what="a second try")
            assert renewals.results == [set()] * len(renewals.results)
        await wait_until(renewed, within_s=WITHIN_S, what="the lease renewed")
        beating.cancel()


async def test_a_heartbeat_gets_the_next_free_connection(engine: Engine, database_url: str) -> None:
    """A worker has more stages than connections; its leases end while their statements wait."""
    await engine.add("I live in Berlin.")
    activation, _ = await engine.claim(engine.hints.waiting.popleft())
    pool = connect(database_url, pool_size=1)
    ended: list[str] = []

    async def stage() -> None:
        await Direct(pool).row(text("SELECT 1 AS one"), {})
        ended.append("stage")

    async def beat() -> None:
        leases = LaneLeases(pool, lease=engine.ledger.lanes.lease)
        assert await leases.renew([activation.hold]) == {activation.hold}
        ended.append("heartbeat")

    async with pool.connect():
        tasks = [asyncio.create_task(work()) for work in [*[stage] * 40, beat]]
        await asyncio.sleep(0)  # all of them wait for the connection
    await asyncio.gather(*tasks)
    assert ended.index("heartbeat") == 0
    await pool.dispose()


async def test_a_lane_whose_worker_is_gone_does_not_wait_for_its_lease(
    engine: Engine, database_url: str
) -> None:
    """It is swept when its heartbeat is late and its worker has no database session."""
    await wait_until(partial(_up_for_a_lease, engine), within_s=30, what="the server's age")
    await engine.add("I live in Berlin.")
    engine.worker = uuid4()
    await engine.claim(engine.hints.waiting.popleft())
    his = connect(database_url, pool_size=1, name=session_name(engine.worker, "worker-1"))
    async with his.connect():
        await engine.pass_time(LEASE_S * 0.35)
        assert await engine.sweep() == 0  # one heartbeat may be late
        await engine.pass_time(LEASE_S * 0.35)
        assert await engine.sweep() == 0  # the worker may hang, but its session is open
    await his.dispose()

    async def taken_over() -> bool:
        return await engine.sweep() == 1

    await wait_until(taken_over, within_s=LEASE_S * 0.2, what="the lane's next worker")
    await engine.drain()
    assert await engine.texts() == ["User lives in Berlin"]


async def test_behind_a_pooler_a_worker_without_sessions_is_not_taken_for_dead(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await wait_until(partial(_up_for_a_lease, engine), within_s=30, what="the server's age")
    await engine.add("I live in Berlin.")
    engine.worker = uuid4()
    await engine.claim(engine.hints.waiting.popleft())
    await engine.pass_time(LEASE_S * 0.7)
    with monkeypatch.context() as patched:
        patched.setattr(due, "behind_pooler", lambda _: True)
        assert await engine.sweep() == 0
    assert await engine.sweep() == 1


async def _up_for_a_lease(engine: Engine) -> bool:
    query = text("SELECT now() - pg_postmaster_start_time() > make_interval(secs => :lease)")
    async with engine.ledger.engine.connect() as connection:
        return bool(await connection.scalar(query, {"lease": LEASE_S}))


async def test_a_lost_hint_is_sent_again_and_the_late_one_stays_valid(engine: Engine) -> None:
    await engine.add("I like jazz.")
    late = engine.hints.waiting.popleft()
    assert await engine.sweep() == 0  # the grace period is not over
    await engine.pass_time(GRACE_S + 1)
    assert await engine.sweep() == 1
    assert engine.hints.waiting[0] == Hint(late.lane_id, late.fence, late.stage)
    assert await engine.run(late) is not None


async def test_a_hint_behind_a_backlog_is_given_more_patience(engine: Engine) -> None:
    await engine.add("I like jazz.")
    await engine.pass_time(GRACE_S + 1)
    due_lanes, patient = engine.ledger.due_lanes, [(engine.project.id, False)]
    assert await due_lanes.sweep(limit=10, patient=patient, patience_s=60) == []
    await engine.pass_time(60)
    assert len(await due_lanes.sweep(limit=10, patient=patient, patience_s=60)) == 1


async def test_a_backlog_of_other_projects_does_not_delay_a_sweep(engine: Engine) -> None:
    await engine.add("I like jazz.")
    await engine.pass_time(GRACE_S + 1)
    patient = [(uuid4(), False)]
    assert len(await engine.ledger.due_lanes.sweep(limit=10, patient=patient, patience_s=60)) == 1


async def test_no_lease_is_renewed_for_another_worker(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    activation, _ = await engine.claim(engine.hints.waiting.popleft())
    leases = engine.ledger.leases
    assert await leases.renew([replace(activation, owner=uuid4()).hold]) == set()
    assert await leases.renew([activation.hold]) == {activation.hold}
