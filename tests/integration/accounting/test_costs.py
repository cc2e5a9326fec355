"""Costs: each model call, even a failed one, is on a receipt; batches share their calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

import pytest
from tenacity import wait_none

from api.events import usage as usage_views
from pipeline.accounting.costs import Paid
from pipeline.adapters.llm_litellm import LiteLLM
from pipeline.adapters.provider_calls import RemoteModel, RetryPolicy
from pipeline.domain.errors import LaneLost
from pipeline.domain.events import StageName, Status
from pipeline.domain.usage import FailedTry, Usage
from pipeline.erasure import service as erasure
from pipeline.erasure.store import OwnerKey
from pipeline.events.dead_letters import Edit
from pipeline.models.prompted import PromptedModel
from tests.support.engine import LEASE_S, Engine
from tests.support.llm_server import LLMServer, On

AT_ONCE = RetryPolicy(tries=1, wait=wait_none())
COUNTED = ("calls", "prompt_tokens", "completion_tokens")


@pytest.fixture
async def server(engine: Engine) -> AsyncIterator[LLMServer]:
    async with LLMServer() as running:
        llm = LiteLLM(RemoteModel("openai/stand-in", running.base_url, retry=AT_ONCE))
        engine.with_model(PromptedModel(llm))
        yield running


async def receipts(engine: Engine, ids: Sequence[UUID]) -> dict[str, int]:
    """Sums of the usage on the receipts of these events."""
    shares: list[Any] = [usage_views.usage(await engine.event(event_id)) for event_id in ids]
    return {name: sum(share[name] for share in shares) for name in COUNTED}


async def sums(engine: Engine, **owner: Any) -> dict[str, int]:
    spent = await engine.ledger.costs.spending(engine.project.id, **owner)
    by_day = sum(spent.days.values(), Paid())
    assert by_day == spent.total
    return {name: getattr(by_day, name) for name in COUNTED}


def billed(server: LLMServer, calls: int) -> dict[str, Any]:
    return {"calls": calls} | {name: server.billed[name] for name in COUNTED[1:]}


async def test_an_answer_that_stays_malformed_stands_on_the_failed_receipt(
    engine: Engine, server: LLMServer
) -> None:
    server.on("extract", "malformed")
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.failure_code) == (Status.FAILED, "LLM_BAD_OUTPUT")
    assert [(run.stage, run.calls) for run in event.stages] == [("extract", 2)]
    assert event.stages[0].ms > 0
    assert await receipts(engine, [event_id]) == billed(server, 2)
    assert server.billed["completion_tokens"] > 0


async def test_an_answer_the_provider_withholds_is_paid_for_all_the_same(
    engine: Engine, server: LLMServer
) -> None:
    server.on("extract", "filtered")
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    assert (await engine.event(event_id)).failure_code == "LLM_REJECTED"
    assert await receipts(engine, [event_id]) == billed(server, 1)


async def test_a_graph_that_stays_malformed_is_paid_for_by_the_event_that_succeeded(
    engine: Engine, server: LLMServer
) -> None:
    server.on("relate", "malformed")
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.graph_status) == (Status.SUCCEEDED, "FAILED")
    assert await receipts(engine, [event_id]) == billed(server, 3)


@pytest.mark.parametrize("stage", ["extract", "decide", "relate"])
async def test_a_call_paid_before_an_outage_is_added_to_those_after_it(
    engine: Engine, server: LLMServer, stage: Any
) -> None:
    await engine.add("I live in Berlin.")
    await engine.drain()
    calls = len(server.calls)
    server.billed.clear()
    server.on(stage, "malformed", times=1)
    server.on("repair", "500", times=1)
    event_id = await engine.add("I moved to Oslo.")
    await engine.drain()
    assert (await engine.event(event_id)).wait_code == "LLM_UNAVAILABLE"
    await engine.pass_time(2000)
    await engine.sweep()
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED
    unanswered = 1
    assert await receipts(engine, [event_id]) == billed(
        server, len(server.calls) - calls - unanswered
    )


async def test_what_halving_a_batch_cost_is_shared_by_the_events_that_were_in_it(
    engine: Engine, server: LLMServer
) -> None:
    server.on("extract", "malformed", containing="poison")
    texts = ["I like jazz.", "I own a boat.", "I like poison.", "I live in Oslo.", "I play chess."]
    ids = [await engine.add(text) for text in texts]
    await engine.drain()
    events = [await engine.event(event_id) for event_id in ids]
    assert [event.status for event in events].count(Status.FAILED) == 1
    assert events[2].failure_code == "LLM_BAD_OUTPUT"
    assert await receipts(engine, ids) == billed(server, len(server.calls))


TURNS = 50
BATCHES = 7  # of up to eight events each


async def test_fifty_queued_turns_cost_seven_calls_of_a_kind_and_have_fifty_receipts(
    engine: Engine, server: LLMServer
) -> None:
    ids = [await engine.add(f"I like tea number {n}.") for n in range(TURNS)]
    await engine.drain()
    assert server.count("extract") <= BATCHES
    assert server.count("decide") <= BATCHES
    assert await receipts(engine, ids) == billed(server, len(server.calls))
    for n, event_id in enumerate(ids):
        [line] = (await engine.event(event_id)).receipt
        assert (line.outcome, line.message_ordinal) == ("ADD", 0)
        assert line.text.endswith(f" {n}")
        assert line.memory_id
        [memory] = await engine.ledger.memories.active(engine.project.id, [line.memory_id])
        assert (memory.event_id, memory.text) == (event_id, line.text)


@pytest.mark.parametrize("place", [0, 5, 8, TURNS - 1])
async def test_a_poison_turn_among_fifty_fails_alone(
    engine: Engine, server: LLMServer, place: int
) -> None:
    server.on("any", "malformed", containing="poison")
    texts = [f"I like tea number {n}." for n in range(TURNS)]
    texts[place] = "I like poison."
    ids = [await engine.add(text) for text in texts]
    await engine.drain()
    statuses = [(await engine.event(event_id)).status for event_id in ids]
    assert statuses.pop(place) is Status.FAILED
    assert set(statuses) == {Status.SUCCEEDED}
    assert await receipts(engine, ids) == billed(server, len(server.calls))


KINDS: tuple[On, ...] = ("extract", "decide", "relate")


async def test_every_call_of_two_hundred_events_is_on_one_receipt_and_in_the_sums(
    engine: Engine, server: LLMServer
) -> None:
    """Batches fail, are halved, wait for an outage, are cancelled and are replayed."""
    users = [f"u{n}" for n in range(10)]
    for kind in KINDS:
        server.on(kind, "malformed", probability=0.1)
    server.on("extract", "malformed", containing="poison")
    server.on("repair", "500", probability=0.2)
    ids = [
        await engine.add(f"I like {'poison' if n % 23 == 0 else 'tea'} number {n}.", user_id=user)
        for n in range(20)
        for user in users
    ]
    cancelled = ids[5]
    for _ in range(len(users)):
        await engine.step()  # pays for the first batch of each user
    await engine.ledger.cancellation.cancel(engine.project.id, cancelled)
    await finish(engine)
    for event_id in ids[:40]:
        if (await engine.event(event_id)).status is Status.FAILED:
            replayed = await engine.ledger.dead_letters.replay(engine.project.id, event_id, Edit())
            engine.hints.waiting.extend(replayed.hints)
    await finish(engine)
    bill = billed(server, server.answered)
    assert server.answered < len(server.calls)  # some calls got no answer
    assert await receipts(engine, ids) == bill
    assert await sums(engine) == bill
    each = [await sums(engine, user_id=user) for user in users]
    assert {name: sum(usage[name] for usage in each) for name in COUNTED} == bill


async def finish(engine: Engine) -> None:
    """Run until no event waits."""
    await engine.drain()
    for _ in range(50):
        await engine.pass_time(2_000)
        if not await engine.sweep():
            return
        await engine.drain()
    raise AssertionError("events that never end")


async def test_shares_go_by_the_size_of_an_event_and_leave_no_remainder(engine: Engine) -> None:
    ids = [await engine.add("I like tea." * times) for times in (1, 2, 4)]
    hint = await engine.run_until(StageName.RETRIEVE)
    activation, _ = await engine.claim(hint)
    usage = Usage("fake/dear", 2, 1_000, 101, 0.000_000_1)
    await engine.ledger.lanes.finish(
        activation, StageName.CONSOLIDATE, output={}, usage=usage, ms=1
    )
    shares = [(await engine.event(event_id)).paid for event_id in ids]
    assert sum(shares, Paid()) == Paid(2, 1_000, 101, 100)
    assert [share.prompt_tokens for share in shares] == sorted(s.prompt_tokens for s in shares)
    assert all(share.prompt_tokens and share.nano_usd for share in shares)
    shown = usage_views.usage(await engine.event(ids[0]))
    assert shown["batch"] is not None
    assert shown["batch"]["events"] == len(ids)
    assert (shown["batch"]["prompt_tokens"], shown["batch"]["cost_usd"]) == (1_000, 1e-7)


async def test_a_call_of_a_worker_that_lost_its_lane_is_paid_for_all_the_same(
    engine: Engine,
) -> None:
    event_id = await engine.add("I like tea.")
    lost, _ = await engine.claim(engine.hints.waiting.popleft())
    await engine.pass_time(LEASE_S + 1)
    await engine.sweep()
    usage = Usage("fake/dear", 1, 10, 1)
    with pytest.raises(LaneLost):
        await engine.ledger.lanes.finish(lost, StageName.RETRIEVE, output={}, usage=usage, ms=1)
    await engine.ledger.costs.add(lost, FailedTry("LANE_LOST", usage, ms=1))
    assert (await engine.event(event_id)).paid == Paid(1, 10, 1)


async def test_an_erased_user_is_in_the_sums_by_no_name(engine: Engine, server: LLMServer) -> None:
    await engine.add("I like tea.", user_id="maya-4711")
    await engine.drain()
    before = await sums(engine)
    assert await sums(engine, user_id="maya-4711") == before
    maya = OwnerKey("user", "maya-4711")
    await erasure.erase(engine.project.id, maya, erasures=engine.ledger.erasures)
    assert await sums(engine) == before
    assert not any((await sums(engine, user_id="maya-4711")).values())
