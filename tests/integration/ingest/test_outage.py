"""A model that is down for hours: lanes are parked, probed one at a time, resumed gradually."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast
from uuid import uuid4

import pytest
from sqlalchemy import func, insert, update

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import ModelUnavailable, SettingRejected, StoreUnavailable
from pipeline.domain.events import FailureCode, Status
from pipeline.domain.facts import Fact
from pipeline.domain.lanes import Hint
from pipeline.domain.tenants import ProjectId
from pipeline.domain.usage import Answer, Usage
from pipeline.domain.vectors import Vector
from pipeline.ledger.tables import cooldowns, shadows
from pipeline.models.circuit_breaker import GuardedEmbedder, GuardedModel
from pipeline.models.circuits import FAILURES, LONGEST_S, PROBE_EVERY, UNUSED_FOR, Permit
from pipeline.models.vector_length import LengthChecked
from pipeline.ports import ExtractionRequest
from tests.support.embedder_hash import HashEmbedder
from tests.support.engine import RUN_LIMITS, Engine, Hints
from tests.support.troubled import Troubled
from workers.dispatch import CeleryDispatcher
from workers.fair_queues import QUEUES
from workers.sweeper import Sweeper


@dataclass
class Remote(RulesModel):
    """Rules that count their calls as a paid model does, and can be switched off."""

    up: bool = True
    calls: list[str] = field(default_factory=list)
    retry_after_s: float | None = None
    refusal: SettingRejected | None = None

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        self.calls.append("extract")
        if self.refusal is not None:
            raise self.refusal
        if not self.up:
            raise ModelUnavailable("503", retry_after_s=self.retry_after_s)
        answer = await super().extract(request)
        return Answer(answer.value, Usage("remote", calls=1))


@pytest.fixture
def remote(engine: Engine) -> Remote:
    model = Remote()
    engine.with_model(GuardedModel(model, engine.ledger.circuits))
    return model


@dataclass
class HandedOut:
    """Dispatcher for the sweeper, backed by the test's own queue of hints."""

    hints: Hints

    def backlogs(self) -> dict[str, int]:
        return {QUEUES[0]: len(self.hints.waiting)}

    def forgot(self) -> bool:
        return False

    def publish(self, hint: Hint, queue: str) -> bool:
        self.hints.waiting.append(hint)
        return True


def sweeper(engine: Engine, ping_store: Callable[[], Awaitable[None]] | None = None) -> Sweeper:
    dispatcher = cast("CeleryDispatcher", HandedOut(engine.hints))
    ping = ping_store or engine.vectors.ping
    return Sweeper(engine.ledger, dispatcher, engine.retention, ping, RUN_LIMITS)


async def test_a_rejected_key_waits_and_goes_on_once_it_is_right(
    engine: Engine, remote: Remote
) -> None:
    refusal = SettingRejected("openai/gpt: HTTP 401. Check MEMLANE_LLM__API_KEY.")
    remote.refusal = refusal
    ids = [await engine.add("I like jazz.", user_id=f"user-{n}") for n in range(2 * FAILURES)]
    await engine.drain()
    for event_id in ids:
        event = await engine.event(event_id)
        assert (event.status, event.wait_code) == (Status.RUNNING, FailureCode.LLM_REJECTED)
        assert "MEMLANE_LLM__API_KEY" in (event.wait_cause or "")
    assert len(remote.calls) == FAILURES
    remote.refusal = None
    await engine.pass_time(PROBE_EVERY.total_seconds())
    restarted = sweeper(engine)
    for _ in range(4):
        await restarted.tick()
        await engine.drain()
    assert {(await engine.event(event_id)).status for event_id in ids} == {Status.SUCCEEDED}


async def test_a_key_that_stays_rejected_fails_under_its_own_name(
    engine: Engine, remote: Remote
) -> None:
    remote.refusal = SettingRejected("openai/gpt: HTTP 401. Check MEMLANE_LLM__API_KEY.")
    engine.services = replace(engine.services, outage_budget_s=0)
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.failure_code) == (Status.FAILED, FailureCode.LLM_REJECTED)
    assert "MEMLANE_LLM__API_KEY" in (event.failure_detail or "")


async def test_a_model_that_is_down_is_asked_by_one_lane_at_a_time(
    engine: Engine, remote: Remote
) -> None:
    remote.up = False
    for n in range(20):
        await engine.add("I like jazz.", user_id=f"user-{n}")
    await engine.drain()
    assert len(remote.calls) == FAILURES  # the other lanes made no call


async def test_six_hours_of_outage_cost_one_probe_every_two_seconds_and_no_event(
    engine: Engine, remote: Remote
) -> None:
    remote.up = False
    ids = [await engine.add("I like jazz.", user_id=f"user-{n}") for n in range(40)]
    await engine.drain()
    patrol, ticks = sweeper(engine), 60
    for _ in range(ticks):
        await engine.pass_time(6 * 3600 / ticks)
        before = len(remote.calls)
        await patrol.tick()
        await engine.drain()
        assert len(remote.calls) - before == 1
    assert {(await engine.event(i)).wait_code for i in ids} == {"LLM_UNAVAILABLE"}
    remote.up = True
    await engine.pass_time(PROBE_EVERY.total_seconds())
    resumed = []
    for _ in range(5):
        before = len(remote.calls)
        await patrol.tick()
        await engine.drain()
        resumed.append(len(remote.calls) - before)
    assert resumed == [1, 10, 20, 9, 0]  # the probe alone, then growing numbers
    assert {(await engine.event(i)).status for i in ids} == {Status.SUCCEEDED}


async def test_a_provider_that_names_a_time_is_left_alone_until_then(
    engine: Engine, remote: Remote
) -> None:
    remote.up, remote.retry_after_s = False, 600
    for n in range(3):
        await engine.add("I like jazz.", user_id=f"user-{n}")
    await engine.drain()
    assert len(remote.calls) == 1
    await engine.pass_time(590)
    assert await engine.ledger.circuits.enter(remote.name, engine.project.id) is Permit.REFUSED
    await engine.pass_time(15)
    assert await engine.ledger.circuits.enter(remote.name, engine.project.id) is Permit.PROBE
    assert await engine.ledger.circuits.enter(remote.name, engine.project.id) is Permit.REFUSED


async def test_a_model_that_is_used_no_more_delays_no_lane(engine: Engine, remote: Remote) -> None:
    """As after a change of the model because of its outage: its circuit stays open."""
    circuits = engine.ledger.circuits
    for _ in range(FAILURES):
        await circuits.failed("openai/former", retry_after_s=None)
    assert [provider.provider for provider in await circuits.cooling(engine.project.id)] == [
        "openai/former"
    ]
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(update(cooldowns).values(probe_at=func.now() - 2 * UNUSED_FOR))
    remote.up = False
    ids = [await engine.add("I like jazz.", user_id=f"user-{n}") for n in range(20)]
    await engine.drain()
    remote.up = True
    await circuits.answered(remote.name)
    patrol = sweeper(engine)
    for _ in range(2):
        await patrol.tick()
        await engine.drain()
    assert {(await engine.event(event_id)).status for event_id in ids} == {Status.SUCCEEDED}
    assert await circuits.cooling(engine.project.id) == []


async def test_one_failed_call_does_not_open_the_circuit(engine: Engine, remote: Remote) -> None:
    remote.up = False
    await engine.add("I like jazz.", user_id="unlucky")
    await engine.step()
    remote.up = True
    await engine.add("I like jazz.", user_id="lucky")
    await engine.drain()
    assert await engine.ledger.circuits.enter(remote.name) is Permit.FREE


async def test_a_provider_cannot_ask_to_be_left_alone_for_days(
    engine: Engine, remote: Remote
) -> None:
    remote.up, remote.retry_after_s = False, 1e12
    await engine.add("I like jazz.")
    await engine.drain()
    await engine.pass_time(LONGEST_S + 1)
    assert await engine.ledger.circuits.enter(remote.name, engine.project.id) is Permit.PROBE


class RemoteEmbedder(HashEmbedder):
    """Embedder that counts its requests, and can be switched off."""

    up = True
    calls = 0

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.calls += 1
        if not self.up:
            raise ModelUnavailable("503")
        return await super().embed(texts)


async def test_an_embedder_that_is_down_is_probed_and_its_lanes_resume_with_it(
    engine: Engine,
) -> None:
    embedder = RemoteEmbedder()
    embedder.up = False
    guarded = GuardedEmbedder(embedder, engine.ledger.circuits)
    engine.services = replace(engine.services, embedder=guarded)
    ids = [await engine.add("I like jazz.", user_id=f"user-{n}") for n in range(20)]
    await engine.drain()
    assert embedder.calls == FAILURES
    patrol = sweeper(engine)
    await engine.pass_time(PROBE_EVERY.total_seconds())
    await patrol.tick()
    await engine.drain()
    assert embedder.calls == FAILURES + 1
    embedder.up = True
    await engine.pass_time(PROBE_EVERY.total_seconds())
    for _ in range(3):
        await patrol.tick()
        await engine.drain()
    assert {(await engine.event(i)).status for i in ids} == {Status.SUCCEEDED}


class Changing(HashEmbedder):
    """Embedder whose vectors get another length, as after a change of the model at its server."""

    def become(self, dimensions: int) -> None:
        self._dimensions = dimensions


async def test_vectors_of_another_length_are_not_stored_and_their_events_wait(
    engine: Engine,
) -> None:
    changing = Changing()
    for first in (True, False):  # the second embedder is that of a restarted process
        embedder = LengthChecked(changing, engine.ledger.memory_vectors.length)
        guarded = GuardedEmbedder(embedder, engine.ledger.circuits)
        engine.services = replace(engine.services, embedder=guarded)
        if first:
            await engine.add("I like jazz.")
            await engine.drain()
        changing.become(32)
        event_id = await engine.add("I play chess.")
        await engine.drain()
        event = await engine.event(event_id)
        assert event.wait_code == FailureCode.LLM_REJECTED
        assert event.wait_cause == (
            "fake/hash: vectors of 32 dimensions instead of 64: another model answers under this"
            " name. Check MEMLANE_EMBEDDER__MODEL."
        )
        changing.become(64)
        await engine.pass_time(2000)
        await engine.sweep()
        await engine.drain()
        assert (await engine.event(event_id)).status is Status.SUCCEEDED


async def test_lanes_that_wait_for_the_store_resume_once_it_answers(engine: Engine) -> None:
    store_is_up = False

    async def ping() -> None:
        if not store_is_up:
            raise StoreUnavailable("down")

    engine.with_model(Troubled(error=StoreUnavailable("down"), times=1))
    event = await engine.add("I like jazz.")
    await engine.drain()
    assert (await engine.event(event)).wait_code == "STORE_UNAVAILABLE"
    patrol = sweeper(engine, ping)
    await patrol.tick()
    assert not engine.hints.waiting
    store_is_up = True
    await patrol.tick()
    await engine.drain()
    assert (await engine.event(event)).status is Status.SUCCEEDED


async def test_the_trouble_of_one_project_stops_no_other(engine: Engine) -> None:
    cooldowns, first, second, third = (
        engine.ledger.circuits,
        *(ProjectId(uuid4()) for _ in range(3)),
    )
    for _ in range(FAILURES):
        await cooldowns.failed("far/model", retry_after_s=None, project_id=first)
    assert await cooldowns.enter("far/model", first) is Permit.REFUSED
    assert await cooldowns.enter("far/model", second) is Permit.FREE
    await cooldowns.failed("far/model", retry_after_s=None, project_id=second)
    assert await cooldowns.enter("far/model", third) is Permit.REFUSED


async def test_failures_of_a_replay_count_as_those_of_its_project(engine: Engine) -> None:
    circuits, replay, stranger = engine.ledger.circuits, ProjectId(uuid4()), ProjectId(uuid4())
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(
            insert(shadows).values(id=replay, project_id=engine.project.id, user_id="maya")
        )
    for project_id in (engine.project.id, *[replay] * FAILURES):
        await circuits.failed("far/model", retry_after_s=None, project_id=project_id)
    assert await circuits.enter("far/model", stranger) is Permit.FREE
    assert await circuits.enter("far/model", replay) is Permit.REFUSED
    assert await circuits.enter("far/model", engine.project.id) is Permit.REFUSED


async def test_a_provider_that_names_a_time_is_left_alone_by_all(engine: Engine) -> None:
    cooldowns = engine.ledger.circuits
    await cooldowns.failed("far/model", retry_after_s=60, project_id=ProjectId(uuid4()))
    assert await cooldowns.enter("far/model", ProjectId(uuid4())) is Permit.REFUSED


async def test_stages_call_on_behalf_of_their_project(engine: Engine, remote: Remote) -> None:
    remote.up = False
    for n in range(FAILURES):
        await engine.add("I like jazz.", user_id=f"user-{n}")
    await engine.drain()
    cooldowns = engine.ledger.circuits
    assert await cooldowns.enter(remote.name, engine.project.id) is Permit.REFUSED
    assert await cooldowns.enter(remote.name, ProjectId(uuid4())) is Permit.FREE


async def test_an_event_that_waits_tells_the_cause(engine: Engine, remote: Remote) -> None:
    remote.up = False
    ids = [await engine.add("I like jazz.", user_id=f"user-{n}") for n in range(FAILURES + 1)]
    await engine.drain()
    assert (await engine.event(ids[0])).wait_cause == "503"
    # This event made no call: the cause is the circuit breaker's, with the interval of its probes.
    assert (await engine.event(ids[-1])).wait_cause == "503 (one call probes it every 2 s)"
    progress = await engine.ledger.events.progress(ids[:1])
    assert progress[ids[0]].wait_cause == "503"
    remote.up = True
    await engine.pass_time(3_600)
    await sweeper(engine).tick()
    await engine.drain()
    assert (await engine.event(ids[0])).wait_cause is None
