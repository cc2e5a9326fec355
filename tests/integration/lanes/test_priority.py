"""Priority: events of low priority wait in lanes of their own class, until a normal add comes."""

from __future__ import annotations

from uuid import uuid4

from pipeline.domain.events import AddOptions, Priority, StageName, Status
from pipeline.domain.messages import Message, Role
from pipeline.erasure.store import OwnerKey
from pipeline.events.dead_letters import Edit
from pipeline.lanes.accept import Add
from pipeline.lanes.load import MEASURED_OVER_S, LoadView
from tests.support.engine import GRACE_S, Engine

LOW = AddOptions(priority=Priority.LOW)


async def is_low(engine: Engine, user_id: str = "maya") -> bool:
    return await engine.ledger.lanes.is_low(engine.scope(user_id).lane_id)


def add_of(engine: Engine, options: AddOptions) -> Add:
    message = Message(Role.USER, "I like jazz.")
    return Add(uuid4(), engine.scope(), [message], options, tokens=4)


async def test_a_lane_with_low_adds_only_has_hints_of_low_priority(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.", options=LOW)
    seen = set()
    while engine.hints.waiting:
        seen.add(engine.hints.waiting[0].low)
        await engine.step()
    assert seen == {True}
    assert (await engine.event(event_id)).status is Status.SUCCEEDED
    await engine.add("I like chess.")
    assert [hint.low for hint in engine.hints.waiting] == [False]


async def test_a_normal_add_raises_a_queued_lane_and_waits_in_order(engine: Engine) -> None:
    first = await engine.add("I live in Berlin.", options=LOW)
    late = await engine.add("I moved to Oslo.")
    assert [hint.low for hint in engine.hints.waiting] == [True, False]
    await engine.add("I like jazz.")
    assert len(engine.hints.waiting) == 2  # the lane is raised already: no further hint
    waiting = engine.hints.waiting.pop()
    await engine.run(waiting)
    assert (await engine.event(first)).status is Status.RUNNING
    assert (await engine.event(late)).status is Status.PENDING
    await engine.drain()
    assert [outcome for outcome, _ in await engine.outcomes(late)] == ["UPDATE"]


async def test_a_lane_that_is_raised_during_a_stage_goes_on_with_normal_priority(
    engine: Engine,
) -> None:
    await engine.add("I like jazz.", options=LOW)
    activation, batch = await engine.claim(engine.hints.waiting.popleft())
    assert activation.low
    await engine.add("I like chess.")
    assert not engine.hints.waiting  # its worker reads the priority after the stage
    assert not await is_low(engine)
    assert batch is not None
    hint = await engine.ledger.lanes.halve_batch(activation, batch)
    claimed, _ = await engine.claim(hint)
    assert not claimed.low


async def test_a_lane_is_low_again_behind_its_last_normal_add(engine: Engine) -> None:
    await engine.add("I like jazz.")
    await engine.add("I like chess.", options=LOW)
    assert not await is_low(engine)
    while (hint := engine.hints.waiting[0]).stage is not StageName.EXTRACT or not hint.low:
        await engine.step()
    assert await is_low(engine)
    await engine.drain()
    assert await engine.lane_state() == "IDLE"


async def test_adds_of_both_priorities_in_one_commit(engine: Engine) -> None:
    normal = AddOptions()
    adds = engine.ledger.group_commit.adds
    accepted = await adds.accept([add_of(engine, options) for options in (LOW, normal, LOW)])
    hints = [row.hint for row in accepted]
    assert [hint.low for hint in hints if hint is not None] == [False]
    accepted = await adds.accept([add_of(engine, LOW), add_of(engine, LOW)])
    assert [row.hint for row in accepted] == [None, None]
    engine.hints.waiting.extend(hint for hint in hints if hint)
    seen = set()
    while engine.hints.waiting:
        seen.add((engine.hints.waiting[0].low, await is_low(engine)))
        await engine.step()
    assert seen == {(False, False), (True, True)}


async def test_a_replay_has_normal_priority(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.", options=LOW)
    await engine.ledger.cancellation.cancel(engine.project.id, event_id)
    await engine.drain()
    await engine.add("I like chess.", options=LOW)
    assert await is_low(engine)
    await engine.ledger.dead_letters.replay(engine.project.id, event_id, Edit())
    assert not await is_low(engine)
    await engine.drain()


async def test_a_sweep_says_the_priority_and_has_more_patience_with_low(engine: Engine) -> None:
    await engine.add("I like jazz.", options=LOW)
    await engine.add("I like jazz.", user_id="jon")
    await engine.pass_time(GRACE_S + 61)
    sweep, low = engine.ledger.due_lanes.sweep, (engine.project.id, True)
    swept = await sweep(limit=10, patient=[low], patience_s=60, low_patience_s=600)
    assert [lane.hint.low for lane in swept] == [False]
    await engine.pass_time(600)
    swept = await sweep(limit=10, patient=[low], patience_s=60, low_patience_s=600)
    assert {lane.hint.lane_id: lane.hint.low for lane in swept} == {
        engine.scope().lane_id: True,
        engine.scope("jon").lane_id: False,
    }


async def test_low_events_do_not_count_as_lag_and_their_lanes_are_a_class(engine: Engine) -> None:
    await engine.add("I like jazz.", options=LOW)
    await engine.add("I like chess.", options=LOW, user_id="jon")
    await engine.add("I like tea.", user_id="ann")
    view, project_id = LoadView(engine.ledger.engine), engine.project.id
    load = await view.look(scope_events=1)
    assert load.lanes == {(project_id, True): 2, (project_id, False): 1}
    assert (load.ready, load.projects) == (1, {project_id: 3})
    assert await view.lanes() == load.lanes
    engine.hints.waiting.rotate(1)
    await engine.run(engine.hints.waiting.popleft(), one_stage=False)
    await engine.age(MEASURED_OVER_S)
    assert not (await view.look(scope_events=1)).backlogged


async def test_an_erased_lane_starts_with_normal_priority(engine: Engine) -> None:
    await engine.add("I like jazz.", options=LOW)
    await engine.drain()
    await engine.ledger.erasures.erase(engine.project.id, OwnerKey("user", "maya"))
    await engine.add("I like chess.")
    assert not await is_low(engine)
