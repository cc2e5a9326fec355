"""Workers of the curator that die, lose their runs, or wait longer than a lease."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, text

from pipeline.curator import service
from pipeline.curator.service import CENTRES, MOST_ATTEMPTS
from pipeline.curator.store import CuratorRuns, RunLimits
from pipeline.domain.curation import CurationRequest, Proposal
from pipeline.domain.usage import Answer
from pipeline.erasure.store import OwnerKey
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.ledger.tables import curator_runs, curator_steps
from pipeline.stores import Ledger
from tests.integration.curator.test_curator import (
    Oracle,
    carry_on,
    contents,
    listed,
    pass_time,
    plant,
    scripted,
    start,
)
from tests.support.engine import Engine
from tests.support.planted import Part, planted
from tests.support.stack import wait_until

# Longest time until another worker may take the run of one that was killed.
MOST_LEASE_MINUTES = 2


class Died(BaseException):
    """The worker was killed."""


class Dying(CuratorRuns):
    """Store that dies before or after its n-th call."""

    def __init__(self, ledger: Ledger, call: int, *, after: bool) -> None:
        super().__init__(ledger.engine)
        self._left, self._after = call, after

    async def _step(self, work: Any) -> Any:
        self._left -= 1
        if self._left == 0 and not self._after:
            work.close()
            raise Died
        result = await work
        if self._left == 0:
            raise Died
        return result

    async def claim(self, *args: Any, **more: Any) -> Any:
        return await self._step(super().claim(*args, **more))

    async def read(self, *args: Any, **more: Any) -> Any:
        return await self._step(super().read(*args, **more))

    async def save(self, *args: Any, **more: Any) -> Any:
        return await self._step(super().save(*args, **more))

    async def create_suggestions(self, *args: Any, **more: Any) -> Any:
        return await self._step(super().create_suggestions(*args, **more))

    async def end(self, *args: Any, **more: Any) -> Any:
        return await self._step(super().end(*args, **more))


@pytest.mark.parametrize("after", [False, True])
async def test_a_kill_at_any_step_loses_and_doubles_nothing(engine: Engine, after: bool) -> None:
    store = [m for m in planted() if m.role is Part.REPEAT and (m.pair or 0) < CENTRES]
    await plant(engine, store)
    whole = Oracle(store)
    run_id = await start(engine)
    await carry_on(engine, whole)
    right = contents(await listed(engine))
    steps = (await engine.ledger.curator.get(engine.project.id, run_id)).steps
    assert len(right) == CENTRES
    kills = 0
    while True:
        kills += 1
        async with engine.ledger.engine.begin() as connection:
            await connection.execute(text("DELETE FROM suggestions"))
        model = Oracle(store)
        await start(engine)
        try:
            await carry_on(engine, model, Dying(engine.ledger, kills, after=after))
        except Died:
            await pass_time(engine, MOST_LEASE_MINUTES)
            await carry_on(engine, model)
        else:
            break
        assert contents(await listed(engine)) == right
        # At most the call that was under way is paid twice; a saved answer is used.
        assert model.calls <= steps + 1
        if after:
            assert model.calls == steps
        async with engine.ledger.engine.connect() as connection:
            open_runs = select(curator_runs.c.id).where(curator_runs.c.completed_at.is_(None))
            assert (await connection.execute(open_runs)).all() == []
            assert (await connection.execute(select(curator_steps))).all() == []
    assert kills > 5


class Away(CuratorRuns):
    """Store that claims a run, and whose ledger then answers the first `parks` + 1 calls not."""

    def __init__(self, ledger: Ledger, *, parks: int = 0) -> None:
        super().__init__(ledger.engine)
        self._parks = parks

    async def read(self, *_: Any, **__: Any) -> Any:
        raise LedgerUnavailable(ConnectionRefusedError(), sent=False)

    async def park(self, *args: Any, **more: Any) -> int | None:
        self._parks -= 1
        if self._parks >= 0:
            raise LedgerUnavailable(ConnectionRefusedError(), sent=False)
        return await super().park(*args, **more)


async def survive_outages(engine: Engine, stores: Callable[[], CuratorRuns]) -> None:
    """A run succeeds after more outages than it has tries; each has a store of its own."""
    store = [m for m in planted() if m.role is Part.REPEAT and (m.pair or 0) < 4]
    await plant(engine, store)
    run_id = await start(engine)
    for _ in range(MOST_ATTEMPTS + 2):
        assert await carry_on(engine, Oracle(store), stores())
        await pass_time(engine, MOST_LEASE_MINUTES)
    await carry_on(engine, Oracle(store))
    run = await engine.ledger.curator.get(engine.project.id, run_id)
    assert (run.state, run.steps) == ("SUCCEEDED", 1)


async def test_an_outage_of_the_ledger_uses_up_no_try_of_a_run(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PARK_PAUSE_S", 0.0)
    parks = itertools.cycle(range(3))
    await survive_outages(engine, lambda: Away(engine.ledger, parks=next(parks)))


class Overtaken(Away):
    """Store whose ledger is away for longer than the lease: the sweeper has queued the run."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine.ledger, parks=30)
        self._server = engine

    async def park(self, *args: Any, **more: Any) -> int | None:
        if not self._parks:
            await pass_time(self._server, MOST_LEASE_MINUTES)
            assert len(await self.sweep(limit=10)) == 1
        return await super().park(*args, **more)


async def test_an_outage_longer_than_the_lease_uses_up_no_try(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PARK_PAUSE_S", 0.0)
    await survive_outages(engine, lambda: Overtaken(engine))


class Mute(CuratorRuns):
    """Store whose ledger does not answer the heartbeats."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger.engine, lease=timedelta(seconds=0.3))
        self.missed = asyncio.Event()

    async def renew(self, *_: Any) -> bool:
        self.missed.set()
        raise LedgerUnavailable(ConnectionRefusedError(), sent=False)


async def test_an_outage_during_the_call_of_a_model_uses_up_no_try(engine: Engine) -> None:
    store = [m for m in planted() if m.role is Part.REPEAT and (m.pair or 0) < 4]
    await plant(engine, store)
    run_id = await start(engine)

    class Slow(Oracle):
        async def curate(self, request: CurationRequest) -> Answer[tuple[Proposal, ...]]:
            await runs.missed.wait()
            await pass_time(engine, MOST_LEASE_MINUTES)
            assert len(await engine.ledger.curator.sweep(limit=10)) == 1
            return await super().curate(request)

    for _ in range(MOST_ATTEMPTS + 2):
        runs = Mute(engine.ledger)
        assert await carry_on(engine, Slow(store), runs)
        await pass_time(engine, MOST_LEASE_MINUTES)
    await carry_on(engine, Oracle(store))
    run = await engine.ledger.curator.get(engine.project.id, run_id)
    assert (run.state, run.steps) == ("SUCCEEDED", 1)


async def test_a_worker_that_lost_its_run_writes_nothing(engine: Engine) -> None:
    store = [m for m in planted() if m.role is Part.REPEAT and (m.pair or 0) < 4]
    await plant(engine, store)

    class Slow(Oracle):
        async def curate(self, request: CurationRequest) -> Answer[tuple[Proposal, ...]]:
            # While this worker waits for its model, its lease ends and another one is done.
            await pass_time(engine, 60)
            await carry_on(engine, scripted(lambda _: []))
            return await super().curate(request)

    run_id = await start(engine)
    await carry_on(engine, Slow(store))
    assert await listed(engine) == []
    run = await engine.ledger.curator.get(engine.project.id, run_id)
    assert (run.state, run.usage.calls) == ("SUCCEEDED", 1)


async def test_a_call_longer_than_the_lease_keeps_its_run(engine: Engine) -> None:
    store = [m for m in planted() if m.role is Part.REPEAT and (m.pair or 0) < 4]
    await plant(engine, store)
    runs = CuratorRuns(engine.ledger.engine, lease=timedelta(seconds=6))

    async def due() -> datetime:
        async with engine.ledger.engine.connect() as connection:
            at: datetime = (await connection.scalars(select(curator_runs.c.due_at))).one()
            return at

    class Slow(Oracle):
        async def curate(self, request: CurationRequest) -> Answer[tuple[Proposal, ...]]:
            first = await due()

            async def renewed_whole() -> bool:
                return await due() >= first + runs.lease

            # The lease that the worker began with is over once a whole lease was added to it.
            await wait_until(renewed_whole, within_s=30, what="renewals of the lease")
            assert await engine.ledger.curator.sweep(limit=10) == []
            return await super().curate(request)

    model = Slow(store)
    run_id = await start(engine)
    await carry_on(engine, model, runs)
    run = await engine.ledger.curator.get(engine.project.id, run_id)
    assert (run.state, model.calls, run.steps) == ("SUCCEEDED", 1, 1)
    assert len(await listed(engine)) == 4


async def test_an_erased_owner_leaves_no_run(engine: Engine) -> None:
    store = [m for m in planted() if m.role is Part.REPEAT and (m.pair or 0) < 4]
    await plant(engine, store)
    await start(engine)
    with pytest.raises(Died):
        await carry_on(engine, Oracle(store), Dying(engine.ledger, 3, after=True))
    async with engine.ledger.engine.connect() as connection:
        assert len((await connection.execute(select(curator_steps))).all()) == 1
    await engine.ledger.erasures.erase(engine.project.id, OwnerKey("user", "maya"))
    async with engine.ledger.engine.connect() as connection:
        for table in (curator_runs, curator_steps):
            assert (await connection.execute(select(table))).all() == []


async def test_a_hint_that_waits_in_a_backlog_stays_valid(engine: Engine) -> None:
    await engine.add("I like tea.")
    await engine.drain()
    await start(engine)
    runs = engine.ledger.curator
    [first] = await runs.sweep(limit=20)
    for _ in range(9):
        await pass_time(engine, 1.1)
        [again] = await runs.sweep(limit=20)
        assert again == first
    claimed = await runs.claim(first)
    assert claimed is not None
    assert await runs.claim(again) is None  # the run has its worker
    await pass_time(engine, MOST_LEASE_MINUTES)
    [taken] = await runs.sweep(limit=20)  # the worker is dead
    assert not await runs.renew(claimed)
    assert await runs.claim(taken) is not None


async def test_a_waiting_run_takes_no_place_and_no_project_those_of_another(
    engine: Engine,
) -> None:
    runs = engine.ledger.curator
    other, _ = await engine.ledger.projects.create("other")
    neighbour = replace(engine, project=other)
    for user in ("maya", "noor", "ada"):
        await engine.add("I like tea.", user_id=user)
    await neighbour.add("I like tea.")
    await engine.drain()
    for scope in (*map(engine.scope, ("maya", "noor", "ada")), neighbour.scope()):
        await runs.start(scope, RunLimits(10, 1_000))
    hints = await runs.sweep(limit=1)
    assert len(hints) == 2  # one of each project
    assert await runs.sweep(limit=1) == []
    for hint in hints:
        claimed = await runs.claim(hint)
        assert claimed is not None
        await runs.park(claimed, delay_s=60, waits=True)  # its model is down
    [following] = await runs.sweep(limit=1)
    assert following.run_id not in {hint.run_id for hint in hints}
