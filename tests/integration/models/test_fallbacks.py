"""Fallback models: a question that one model does not answer goes to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest
from tenacity import wait_none

from api.events import usage as usage_views
from pipeline.accounting.costs import Paid
from pipeline.adapters.llm_openai import OpenAIChat
from pipeline.adapters.provider_calls import RemoteModel, RetryPolicy
from pipeline.domain.events import FailureCode, Status
from pipeline.models.circuit_breaker import GuardedModel
from pipeline.models.circuits import FAILURES
from pipeline.models.fallbacks import FallbackModel
from pipeline.models.measured import MeasuredModel
from pipeline.models.prompted import PromptedModel
from pipeline.ports import MemoryModel
from tests.support.engine import Engine
from tests.support.llm_server import Do, LLMServer

FIRST, SECOND = "openai/first", "openai/second"
AT_ONCE = RetryPolicy(wait=wait_none())
ADDS, USERS = 200, 100
TURNS = (
    "My name is Ann and I live in Rome.",
    "I moved from Rome to Oslo and I work at Siemens.",
)


@pytest.fixture
async def first() -> AsyncIterator[LLMServer]:
    async with LLMServer(seed=15) as running:
        yield running


@pytest.fixture
async def second() -> AsyncIterator[LLMServer]:
    async with LLMServer() as running:
        yield running


def guarded(engine: Engine, name: str, server: LLMServer) -> MemoryModel:
    remote = RemoteModel(name, api_base=server.base_url, retry=AT_ONCE)
    model = MeasuredModel(PromptedModel(OpenAIChat(remote)))
    return GuardedModel(model, engine.ledger.circuits)


@pytest.fixture
async def chain(
    engine: Engine, first: LLMServer, second: LLMServer
) -> AsyncIterator[FallbackModel]:
    model = FallbackModel([guarded(engine, FIRST, first), guarded(engine, SECOND, second)])
    engine.with_model(model)
    yield model
    await model.close()


async def models_of(engine: Engine, event_id: object) -> list[str]:
    view = await engine.event(event_id)  # type: ignore[arg-type]
    return [run.model for run in view.stages if run.model and run.code is None]


async def test_no_add_fails_while_the_first_model_answers_a_third_unusably(
    engine: Engine, chain: FallbackModel, first: LLMServer, second: LLMServer
) -> None:
    first.on("any", "malformed", probability=0.2)
    first.on("any", "truncated", probability=0.2)
    ids = []
    for turn in TURNS:
        ids += [await engine.add(turn, user_id=f"user-{n}") for n in range(USERS)]
        await engine.drain()
    assert len(ids) == ADDS
    events = [await engine.event(event_id) for event_id in ids]
    assert Counter(event.status for event in events) == {Status.SUCCEEDED: ADDS}
    assert {event.graph_status for event in events} == {"SUCCEEDED"}
    assert all(event.receipt for event in events)
    # Both models were needed, and both are paid for under their own names.
    spent = (await engine.ledger.costs.spending(engine.project.id)).models
    assert {FIRST: spent[FIRST].calls, SECOND: spent[SECOND].calls} == {
        FIRST: len(first.calls),
        SECOND: len(second.calls),
    }
    assert 0 < len(second.calls) < len(first.calls)
    assert spent[FIRST].prompt_tokens == first.billed["prompt_tokens"]


async def test_without_a_fallback_some_of_these_adds_fail(engine: Engine, first: LLMServer) -> None:
    alone = guarded(engine, FIRST, first)
    engine.with_model(alone)
    first.on("any", "malformed", probability=0.2)
    first.on("any", "truncated", probability=0.2)
    ids = [await engine.add(TURNS[0], user_id=f"user-{n}") for n in range(USERS)]
    await engine.drain()
    await alone.close()
    statuses = Counter([(await engine.event(event_id)).status for event_id in ids])
    assert statuses[Status.FAILED] > 0


@pytest.mark.parametrize("do", ["malformed", "truncated", "filtered", "401", "500", "close"])
async def test_the_receipt_names_the_model_that_answered(
    engine: Engine, chain: FallbackModel, first: LLMServer, second: LLMServer, do: Do
) -> None:
    first.on("extract", do)
    event_id = await engine.add(TURNS[0])
    await engine.drain()
    event = await engine.event(event_id)
    assert event.status is Status.SUCCEEDED
    assert await models_of(engine, event_id) == [SECOND, FIRST]  # extract, relate
    assert second.count("extract") == 1
    failed = [(run.model, run.calls) for run in event.stages if run.code]
    answered = {"malformed": 2, "truncated": 2, "filtered": 1}.get(do, 0)
    assert failed == ([(FIRST, answered)] if answered else [])
    # The costs of the event include the calls that were of no use.
    assert event.paid == sum((run.paid for run in event.stages), Paid())
    assert usage_views.usage(event)["models"].count(SECOND) == 1


async def test_a_model_that_is_down_is_not_called_and_holds_nothing_up(
    engine: Engine, chain: FallbackModel, first: LLMServer, second: LLMServer
) -> None:
    first.on("any", "500")
    ids = [await engine.add(TURNS[0], user_id=f"user-{n}") for n in range(2 * FAILURES)]
    await engine.drain()
    assert {(await engine.event(event_id)).status for event_id in ids} == {Status.SUCCEEDED}
    # Each failure is a call with its retries, and then the circuit is open.
    assert len(first.calls) == FAILURES * AT_ONCE.tries
    failure = await engine.ledger.circuits.failure(FIRST)
    assert failure is not None
    assert failure.is_open
    assert await engine.ledger.circuits.failure(SECOND) is None


async def test_the_failure_of_all_models_names_each_of_them(
    engine: Engine, chain: FallbackModel, first: LLMServer, second: LLMServer
) -> None:
    first.on("extract", "malformed")
    second.on("extract", "400")
    event_id = await engine.add(TURNS[0])
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.failure_code) == (Status.FAILED, FailureCode.LLM_BAD_OUTPUT)
    assert FIRST in (event.failure_detail or "")
    assert SECOND in (event.failure_detail or "")
    assert "HTTP 400" in (event.failure_detail or "")
    assert event.paid.calls == len(first.calls)


async def test_an_event_waits_if_only_the_keys_are_wrong(
    engine: Engine, chain: FallbackModel, first: LLMServer, second: LLMServer
) -> None:
    first.on("extract", "401")
    second.on("extract", "401")
    event_id = await engine.add(TURNS[0])
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.wait_code) == (Status.RUNNING, FailureCode.LLM_REJECTED)
    assert FIRST in (event.wait_cause or "")
    assert SECOND in (event.wait_cause or "")


async def test_an_event_waits_if_one_of_the_models_may_come_back(
    engine: Engine, chain: FallbackModel, first: LLMServer, second: LLMServer
) -> None:
    first.on("extract", "malformed", times=2)
    second.on("any", "429", times=1, retry_after_s=120)
    event_id = await engine.add(TURNS[0])
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.wait_code) == (Status.RUNNING, FailureCode.LLM_UNAVAILABLE)
    assert event.paid == Paid(2, event.paid.prompt_tokens, event.paid.completion_tokens)
    await engine.pass_time(200)
    await engine.sweep()
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED
    assert await models_of(engine, event_id) == [FIRST, FIRST]
