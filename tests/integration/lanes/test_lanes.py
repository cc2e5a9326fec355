"""The lane state machine on a real PostgreSQL: order, fences, recovery. Tests run the hints."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast
from uuid import uuid4

import pytest
from sqlalchemy import delete, func, select, text

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import LaneLost, MalformedAnswer, ModelUnavailable, ProjectGone
from pipeline.domain.events import AddOptions, EventType, StageName, Status
from pipeline.domain.facts import Fact
from pipeline.domain.filters import parse
from pipeline.domain.graph import Entity, GraphChanges, Relation, RelationRequest
from pipeline.domain.lanes import Hold, Wake
from pipeline.domain.stage_outputs import Related, dump
from pipeline.domain.usage import Answer, Usage
from pipeline.erasure.store import OwnerKey
from pipeline.lanes import store as machine
from pipeline.lanes.store import BEATS, Ending, Lanes, session_name
from pipeline.ledger.engine import connect
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.ledger.tables import lanes as lane_rows
from pipeline.ledger.tables import projects
from pipeline.memories.delete_by_filter import DeleteRequest
from pipeline.ports import ExtractionRequest
from tests.support.engine import GRACE_S, LEASE_S, NO_CHANGES, Engine, locked
from tests.support.stack import wait_until
from workers.runtime import Heartbeat

WITHIN_S = 10.0


@dataclass
class Troubled(RulesModel):
    """Rules that raise `error` for a batch that contains `word`, at most `times` times."""

    word: str = ""
    error: Exception | None = None
    times: int = 10**6
    calls: list[int] = field(default_factory=list)

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        self.calls.append(len(request.messages))
        if (
            self.error
            and self.times > 0
            and any(self.word in sourced.message.content for sourced in request.messages)
        ):
            self.times -= 1
            raise self.error
        return await super().extract(request)


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
    assert len([wake for wake in following if wake]) == 1


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


async def test_a_zombie_can_neither_finish_nor_apply_nor_settle(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    hint = await engine.run_until(StageName.APPLY)
    lanes = engine.ledger.lanes
    zombie, batch = await engine.claim(hint)
    assert batch is not None
    await engine.pass_time(LEASE_S + 1)
    engine.hints.waiting.clear()
    await engine.sweep()
    for effects in (None, NO_CHANGES):
        with pytest.raises(LaneLost):
            await lanes.finish(
                zombie, StageName.RELATE, output={}, usage=Usage(), ms=1, effects=effects
            )
    with pytest.raises(LaneLost):
        await lanes.settle(zombie, batch, Ending(Status.SUCCEEDED))
    with pytest.raises(LaneLost):
        await lanes.wait(zombie, ModelUnavailable.code, delay_s=1)
    with pytest.raises(LaneLost):
        await lanes.split(zombie, batch)
    assert await engine.texts() == []
    await engine.drain()
    assert len(await engine.texts()) == 1


async def test_a_heartbeat_keeps_a_lease_and_cannot_revive_a_lost_one(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    lanes = engine.ledger.lanes
    activation, _ = await engine.claim(engine.hints.waiting.popleft())
    await engine.pass_time(LEASE_S - 1)
    await lanes.renew([activation.hold])
    await engine.pass_time(LEASE_S - 1)
    assert await engine.sweep() == 0
    await engine.pass_time(LEASE_S)
    assert await engine.sweep() == 1
    await lanes.renew([activation.hold])
    await engine.pass_time(GRACE_S + 1)
    assert await engine.sweep() == 1  # still queued, so due again


async def test_a_heartbeat_passes_over_a_lane_that_is_locked(engine: Engine) -> None:
    """An undo or an erasure locks one scope's row; the leases of all other lanes are renewed."""
    holds = []
    for user in ("maya", "locked", "noor"):
        await engine.add("I live in Berlin.", user_id=user)
        activation, _ = await engine.claim(engine.hints.waiting.popleft())
        holds.append(activation.hold)
    await engine.pass_time(LEASE_S - 1)
    lanes = engine.ledger.lanes
    async with locked(engine, "locked"), asyncio.timeout(WITHIN_S):
        assert await lanes.renew(holds) == {holds[0], holds[2]}
    assert await lanes.renew(holds[1:2]) == {holds[1]}
    await engine.pass_time(LEASE_S - 1)
    assert await engine.sweep() == 0


@dataclass
class Renewals:
    """Records the lanes that each heartbeat renewed."""

    lanes: Lanes
    results: list[set[Hold]] = field(default_factory=list)

    async def renew(self, holds: Sequence[Hold]) -> set[Hold]:
        self.results.append(await self.lanes.renew(holds))
        return self.results[-1]


async def test_the_lease_of_a_lane_that_was_locked_is_renewed_before_the_next_beat(
    engine: Engine,
) -> None:
    await engine.add("I live in Berlin.")
    activation, _ = await engine.claim(engine.hints.waiting.popleft())
    renewals = Renewals(engine.ledger.lanes)
    heartbeat = Heartbeat(cast("Lanes", renewals), lease_s=BEATS * 3 * WITHIN_S)

    async def tried() -> bool:
        return len(renewals.results) > 1

    async def renewed() -> bool:
        return renewals.results[-1] == {activation.hold}

    with heartbeat.hold(activation):
        async with locked(engine, "maya"):
            beating = asyncio.create_task(heartbeat.beat())
            await wait_until(tried, within_s=WITHIN_S, what="a second try")
            assert renewals.results == [set()] * len(renewals.results)
        await wait_until(renewed, within_s=WITHIN_S, what="the lease renewed")
        beating.cancel()


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
        patched.setattr(machine, "behind_pooler", lambda _: True)
        assert await engine.sweep() == 0
    assert await engine.sweep() == 1


async def _up_for_a_lease(engine: Engine) -> bool:
    query = text("SELECT now() - pg_postmaster_start_time() > make_interval(secs => :lease)")
    async with engine.ledger.engine.connect() as connection:
        return bool(await connection.scalar(query, {"lease": LEASE_S}))


async def test_a_lost_hint_is_told_again_and_the_late_one_stays_good(engine: Engine) -> None:
    await engine.add("I like jazz.")
    late = engine.hints.waiting.popleft()
    assert await engine.sweep() == 0  # the grace period is not over
    await engine.pass_time(GRACE_S + 1)
    assert await engine.sweep() == 1
    assert engine.hints.waiting[0] == Wake(late.lane_id, late.fence, late.stage)
    assert await engine.run(late) is not None


async def test_a_hint_behind_a_backlog_is_given_more_patience(engine: Engine) -> None:
    await engine.add("I like jazz.")
    await engine.pass_time(GRACE_S + 1)
    lanes, patient = engine.ledger.lanes, [engine.project.id]
    assert await lanes.sweep(limit=10, patient=patient, patience_s=60) == []
    await engine.pass_time(60)
    assert len(await lanes.sweep(limit=10, patient=patient, patience_s=60)) == 1


async def test_the_backlog_of_others_asks_nobody_for_patience(engine: Engine) -> None:
    await engine.add("I like jazz.")
    await engine.pass_time(GRACE_S + 1)
    assert len(await engine.ledger.lanes.sweep(limit=10, patient=[uuid4()], patience_s=60)) == 1


async def test_a_model_outage_parks_the_lane_and_costs_no_attempt(engine: Engine) -> None:
    model = Troubled(word="jazz", error=ModelUnavailable("503"), times=9)
    engine.with_model(model)
    event_id = await engine.add("I like jazz.")
    for _ in range(9):
        await engine.drain()
        event = await engine.event(event_id)
        assert event.status is Status.RUNNING
        assert event.wait_code == "LLM_UNAVAILABLE"
        assert event.wait_until is not None
        await engine.pass_time(2000)
        assert await engine.sweep() == 1
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED


async def test_an_outage_longer_than_the_budget_fails_the_event_by_name(engine: Engine) -> None:
    engine.with_model(Troubled(word="jazz", error=ModelUnavailable("503")))
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    await engine.pass_time(2000)
    await engine.sweep()
    engine.services = replace(engine.services, outage_budget_s=0.0)
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.failure_code) == (Status.FAILED, "DEADLINE")
    assert "LLM_UNAVAILABLE" in (event.failure_detail or "")
    assert await engine.lane_state() == "IDLE"


async def test_an_event_told_to_wait_for_days_fails_when_its_own_time_is_over(
    engine: Engine,
) -> None:
    budget_s = engine.services.outage_budget_s
    engine.with_model(Troubled(error=ModelUnavailable("429", retry_after_s=3 * budget_s)))
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    await engine.pass_time(budget_s - 5)
    assert await engine.sweep() == 0
    await engine.pass_time(10)
    assert await engine.sweep() == 1
    await engine.age(budget_s + 5)
    await engine.drain()
    assert (await engine.event(event_id)).failure_code == "DEADLINE"


async def test_one_bad_event_among_seven_fails_alone(engine: Engine) -> None:
    model = Troubled(word="poison", error=MalformedAnswer("no JSON"))
    engine.with_model(model)
    texts = [
        "I like jazz.",
        "I like chess.",
        "I like tea.",
        "poison",
        "I like rye.",
        "I like rain.",
    ]
    ids = [await engine.add(text) for text in texts]
    await engine.drain()
    statuses = [(await engine.event(event_id)).status for event_id in ids]
    assert statuses == [Status.FAILED if text == "poison" else Status.SUCCEEDED for text in texts]
    assert (await engine.event(ids[3])).failure_code == "LLM_BAD_OUTPUT"
    assert len(await engine.texts()) == 5
    assert model.calls[0] == 6  # first tried in one batch


async def test_a_surprise_in_a_stage_is_internal_and_names_only_its_type(engine: Engine) -> None:
    engine.with_model(Troubled(word="jazz", error=KeyError("I like jazz.")))
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.failure_code, event.failure_detail) == ("INTERNAL", "KeyError")


class Extracting(RulesModel):
    """Model whose facts contain a character that PostgreSQL cannot store."""

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        return Answer((Fact("User likes \0", request.messages[0].source),))


async def test_what_the_ledger_refuses_to_store_fails_at_once_by_its_code(engine: Engine) -> None:
    engine.with_model(Extracting())
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.failure_code) == (Status.FAILED, "INTERNAL")
    assert event.failure_detail == "The ledger refused to store it (SQLSTATE 22P05)."


async def test_a_state_of_the_ledger_that_passes_is_waited_for(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.")
    refuse = (
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE SQLSTATE '53100' USING MESSAGE = 'disk full'; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON stage_runs EXECUTE FUNCTION refuse()",
    )
    async with engine.ledger.engine.begin() as connection:
        for statement in refuse:
            await connection.execute(text(statement))
    await engine.step()
    event = await engine.event(event_id)
    assert (event.status, event.wait_code) == (Status.RUNNING, "STORE_UNAVAILABLE")
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text("DROP TRIGGER refuse ON stage_runs"))
    await engine.pass_time(60)
    await engine.sweep()
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED


class Naming(RulesModel):
    """Model that returns a very long text as the name of an entity."""

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        user = Entity("User", "person")
        page = Entity("".join(chr(97 + n * n % 26) + str(n) for n in range(4_000)), "thing")
        named = Relation(user, "likes", Entity("jazz", "music"), 0)
        return Answer(GraphChanges((named, Relation(user, "likes", page, 0))))


async def test_a_name_longer_than_an_index_holds_is_none(engine: Engine) -> None:
    engine.with_model(Naming())
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.graph_status) == (Status.SUCCEEDED, "SUCCEEDED")
    [relation] = await engine.relations("jazz")
    assert relation.destination == "jazz"


async def test_a_stage_whose_ground_never_stops_moving_fails_by_name(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.")
    clash = (
        "CREATE FUNCTION clash() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE unique_violation; END $$",
        "CREATE TRIGGER clash BEFORE INSERT ON memories EXECUTE FUNCTION clash()",
    )
    async with engine.ledger.engine.begin() as connection:
        for statement in clash:
            await connection.execute(text(statement))
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.failure_code, event.failure_detail) == ("INTERNAL", "MovedOn")


async def test_a_lane_may_wait_more_often_than_a_small_number_counts(engine: Engine) -> None:
    await engine.add("I like jazz.")
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text("UPDATE lanes SET waits = 32767"))
    engine.with_model(Troubled(word="jazz", error=ModelUnavailable("503")))
    await engine.step()
    assert await engine.lane_state() == "WAITING"


async def test_scopes_run_beside_each_other(engine: Engine) -> None:
    await engine.add("I live in Berlin.", user_id="maya")
    await engine.add("I live in Oslo.", user_id="jon")
    await engine.step()
    await engine.step()
    assert {hint.stage for hint in engine.hints.waiting} == {StageName.RETRIEVE}
    await engine.drain()
    assert len(await engine.texts("maya")) == len(await engine.texts("jon")) == 1


END_WHO_WAITS = """
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
        back = await engine.ledger.lanes.hand_back(activation)
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
    related = dump(Related("SUCCEEDED", GraphChanges()))
    await lanes.finish(activation, None, output=related, usage=Usage(), ms=1)
    back = await lanes.hand_back(activation)
    assert back is not None
    engine.hints.waiting[0] = back
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED
    assert len(await engine.history_rows()) == 1


async def test_a_stage_cut_off_while_it_works_is_handed_back_by_the_stage_runner(
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
    wake = await work
    assert wake is not None
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
        async with engine.ledger.engine.connect() as looking:
            return bool((await looking.execute(text(END_WHO_WAITS))).all())

    async with engine.ledger.engine.connect() as other:
        # The commit of the stage waits for this lock; then its connection breaks.
        await other.execute(text("SELECT FROM lanes FOR UPDATE"))
        answer.set()
        await wait_until(ended, within_s=10, what="somebody who waits for the lane")
    wake = await work
    assert wake is not None
    assert await engine.lane_state() == "QUEUED"
    activation, _ = await engine.claim(wake)
    assert activation.attempts == 1
    again = await engine.ledger.lanes.hand_back(activation)
    assert again is not None
    engine.hints.waiting[0] = again
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED
    assert len(await engine.texts()) == 1


async def test_a_lane_somebody_else_holds_by_now_is_not_handed_back(engine: Engine) -> None:
    await engine.add("I like jazz.")
    lanes = engine.ledger.lanes
    slow, _ = await engine.claim(engine.hints.waiting.popleft())
    await engine.pass_time(LEASE_S + 1)
    await engine.sweep()
    await engine.claim(engine.hints.waiting[0])
    assert await lanes.hand_back(slow) is None
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


async def test_a_project_that_is_deleted_accepts_nothing_more(engine: Engine) -> None:
    """An API process may still have its key in the cache for some seconds."""
    ledger = engine.ledger
    gone = await ledger.projects.add(engine.project.organization_id, "gone")
    late = replace(engine, project=gone)
    await ledger.removal.remove(gone)
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


async def test_no_lease_is_renewed_for_another_worker(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    activation, _ = await engine.claim(engine.hints.waiting.popleft())
    lanes = engine.ledger.lanes
    assert await lanes.renew([replace(activation, owner=uuid4()).hold]) == set()
    assert await lanes.renew([activation.hold]) == {activation.hold}


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
