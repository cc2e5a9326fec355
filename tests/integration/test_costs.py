"""Whatever a model was paid stands on a receipt, to the token: what came to nothing, too; and a
backlog is paid for by the batch.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from fractions import Fraction
from typing import Any
from uuid import UUID

import pytest
from tenacity import wait_none

from api import shapes
from pipeline.adapters.llm_litellm import LiteLLM
from pipeline.adapters.provider_calls import RetryPolicy
from pipeline.domain import Status
from pipeline.prompted import PromptedModel
from tests.support.engine import Engine
from tests.support.llm_server import LLMServer

AT_ONCE = RetryPolicy(tries=1, wait=wait_none())
COUNTED = ("calls", "prompt_tokens", "completion_tokens")


@pytest.fixture
async def server(engine: Engine) -> AsyncIterator[LLMServer]:
    async with LLMServer() as running:
        llm = LiteLLM("openai/stand-in", api_base=running.base_url, retry=AT_ONCE)
        engine.with_model(PromptedModel(llm))
        yield running


async def receipts(engine: Engine, ids: Sequence[UUID]) -> dict[str, Fraction]:
    """What the receipts add up to, each with its event's share of what a batch cost."""
    total = dict.fromkeys(COUNTED, Fraction())
    for event_id in ids:
        usage = shapes.usage(await engine.event(event_id))
        for part in (usage, *usage["earlier_tries"]):
            for name in COUNTED:
                total[name] += Fraction(part[name], part["batch_events"])
    return total


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
    server.on("extract", "malformed", said="poison")
    said = ["I like jazz.", "I own a boat.", "I like poison.", "I live in Oslo.", "I play chess."]
    ids = [await engine.add(text) for text in said]
    await engine.drain()
    events = [await engine.event(event_id) for event_id in ids]
    assert [event.status for event in events].count(Status.FAILED) == 1
    assert events[2].failure_code == "LLM_BAD_OUTPUT"
    assert events[2].earlier_tries[0]["batch_events"] == len(ids)
    assert await receipts(engine, ids) == billed(server, len(server.calls))


TURNS = 50
BATCHES = 7  # of eight


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
    server.on("any", "malformed", said="poison")
    said = [f"I like tea number {n}." for n in range(TURNS)]
    said[place] = "I like poison."
    ids = [await engine.add(text) for text in said]
    await engine.drain()
    statuses = [(await engine.event(event_id)).status for event_id in ids]
    assert statuses.pop(place) is Status.FAILED
    assert set(statuses) == {Status.SUCCEEDED}
    assert await receipts(engine, ids) == billed(server, len(server.calls))
