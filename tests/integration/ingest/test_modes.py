"""Modes and budgets: how much work a model does for an add, and how a budget lowers it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from api.events import responses as event_responses
from pipeline import telemetry
from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import (
    AddOptions,
    EventType,
    FailureCode,
    Instructions,
    Question,
    StageName,
    Status,
)
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.filters import parse
from pipeline.domain.graph.values import GraphChanges, RelationRequest
from pipeline.domain.modes import Mode
from pipeline.domain.usage import Answer, Usage
from pipeline.ports import ExtractionRequest
from pipeline.search.query import Query
from pipeline.search.service import search
from tests.support.engine import Engine

TOKENS = 100
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


@dataclass
class Priced(RulesModel):
    """Rules whose every call costs TOKENS tokens and a cent, and is recorded."""

    calls: list[str] = field(default_factory=list)

    def _paid(self, task: str, answer: Answer[Any]) -> Answer[Any]:
        self.calls.append(task)
        usage = Usage("fake/priced", 1, TOKENS - 10, 10, cost_usd=0.01, prompt=f"{task}@v1")
        return Answer(answer.value, usage, answer.note)

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        return self._paid("extract", await super().extract(request))

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        return self._paid("decide", await super().decide(facts, neighbours, instructions))

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        return self._paid("relate", await super().relate(request))

    async def distil(
        self, question: Question, memories: Sequence[str]
    ) -> Answer[Mapping[str, Any]]:
        return self._paid("distil", await super().distil(question, memories))


@pytest.fixture
def model(engine: Engine) -> Priced:
    priced = Priced()
    engine.with_model(priced)
    return priced


async def set_project(engine: Engine, **columns: Any) -> None:
    await engine.ledger.projects.change(engine.project.id, columns, {})


async def added(engine: Engine, *texts: str, mode: Mode | None = None, **more: Any) -> UUID:
    event_id = await engine.add(*texts, options=AddOptions(mode=mode), **more)
    await engine.drain()
    return event_id


async def turns_with(engine: Engine, text: str, user_id: str = "maya") -> list[str]:
    query = Query(text, parse({"user_id": user_id}), 10, 0.0, facts=False, turns=True)
    services = engine.services
    result = await search(
        engine.project.id,
        query,
        ledger=engine.ledger,
        embedder=services.embedder,
        index=services.index,
    )
    return [hit.passage.text for hit in result.hits]


async def test_append_makes_one_call_and_only_adds(engine: Engine, model: Priced) -> None:
    await added(engine, "I live in Bern.", mode=Mode.APPEND)
    second = await added(engine, "I live in Porto now.", mode=Mode.APPEND)
    assert model.calls == ["extract", "extract"]
    assert {outcome for outcome, _ in await engine.outcomes(second)} == {Outcome.ADD}
    assert len(await engine.texts()) == 2
    event = await engine.event(second)
    assert (event.mode, event.mode_reason, event.graph_status) == (Mode.APPEND, None, None)


async def test_append_stores_an_exact_repeat_once(engine: Engine, model: Priced) -> None:
    await added(engine, "I live in Bern.", mode=Mode.APPEND)
    again = await added(engine, "I live in Bern.", mode=Mode.APPEND)
    assert {outcome for outcome, _ in await engine.outcomes(again)} == {Outcome.NOOP}
    assert len(await engine.texts()) == 1


async def test_turns_keeps_the_messages_without_a_model(engine: Engine, model: Priced) -> None:
    event_id = await added(engine, "I live in Bern.", mode=Mode.TURNS)
    event = await engine.event(event_id)
    assert (event.status, event.mode, event.receipt) == (Status.SUCCEEDED, Mode.TURNS, [])
    assert "searchable as turns" in (event.note or "")
    assert model.calls == []
    assert await turns_with(engine, "Bern") == ["I live in Bern."]


async def test_the_call_goes_before_the_project_and_neither_concerns_verbatim_adds(
    engine: Engine, model: Priced
) -> None:
    await set_project(engine, mode="turns")
    chosen = await added(engine, "I live in Bern.", mode=Mode.CONSOLIDATE)
    default = await added(engine, "I work at Siemens.")
    verbatim = await engine.add("I like tea.", options=AddOptions(infer=False))
    await engine.drain()
    modes = [(await engine.event(event_id)).mode for event_id in (chosen, default, verbatim)]
    assert modes == [Mode.CONSOLIDATE, Mode.TURNS, None]
    assert "I like tea." in await engine.texts()


async def test_adds_of_two_modes_share_no_batch(engine: Engine, model: Priced) -> None:
    first = await engine.add("I live in Bern.", options=AddOptions(mode=Mode.APPEND))
    second = await engine.add("I like tea.", options=AddOptions(mode=Mode.TURNS))
    await engine.drain()
    batches = {(await engine.event(event_id)).batch_id for event_id in (first, second)}
    assert len(batches) == 2


async def test_a_budget_leads_from_consolidate_over_append_to_turns(
    engine: Engine, model: Priced
) -> None:
    await set_project(engine, budget={"project": {"tokens": 10 * TOKENS, "per": "day"}})
    before = by_budget()
    ids = [await added(engine, f"My friend {name} likes tea.") for name in NAMES]
    events = [await engine.event(event_id) for event_id in ids]
    assert {event.status for event in events} == {Status.SUCCEEDED}
    modes = [Mode(event.mode) for event in events if event.mode]
    order = [mode for mode, after in zip(modes, [*modes[1:], None], strict=True) if mode != after]
    assert order == list(Mode)
    # The reason is on the receipt of each lowered add, and of no other.
    for event, mode in zip(events, modes, strict=True):
        assert (event.mode_reason is None) == (mode is Mode.CONSOLIDATE)
    last = event_responses.event(events[-1])
    assert last["mode_reason"] == "Budget: 100% of the project's 1000 tokens per day is used."
    lowered = {mode: after - before[mode] for mode, after in by_budget().items()}
    assert lowered == {mode: modes.count(mode) for mode in (Mode.APPEND, Mode.TURNS)}
    # Nothing is lost: what became no memory is found as a turn.
    for event, name in zip(events, NAMES, strict=True):
        if event.mode == Mode.TURNS:
            assert f"My friend {name} likes tea." in await turns_with(engine, name)
    assert (await engine.ledger.costs.spending(engine.project.id)).total.calls == len(model.calls)


NAMES = ("Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gwen", "Hal", "Ida", "Jon", "Kim", "Leo")


def by_budget() -> dict[Mode, float]:
    return {
        mode: telemetry.events_by_mode.labels(mode, "budget")._value.get()
        for mode in (Mode.APPEND, Mode.TURNS)
    }


async def test_a_budget_is_exceeded_by_no_more_than_the_calls_in_progress(
    engine: Engine, model: Priced
) -> None:
    workers, limit = 4, 20 * TOKENS
    await set_project(engine, budget={"project": {"tokens": limit, "per": "month"}})
    for turn in ("I live in Bern.", "I live in Porto now.", "I live in Rome now."):
        for n in range(20):
            await engine.add(turn, user_id=f"user-{n}")
        await asyncio.gather(*(engine.drain() for _ in range(workers)))
    spent = (await engine.ledger.costs.spending(engine.project.id)).total
    tokens = spent.prompt_tokens + spent.completion_tokens
    assert 0.8 * limit <= tokens <= limit + workers * TOKENS
    totals = await engine.ledger.balance.totals(engine.project.id)
    assert (totals.succeeded, totals.failed, totals.balanced) == (60, 0, True)


async def test_a_users_budget_limits_that_user_alone(engine: Engine, model: Priced) -> None:
    await set_project(engine, budget={"user": {"usd": 0.02, "per": "month"}})
    texts = ("I live in Bern.", "I like tea.")
    first = [await added(engine, turn, user_id="maya") for turn in texts]
    other = await added(engine, "I live in Rome.", user_id="noor")
    modes = [(await engine.event(event_id)).mode for event_id in (*first, other)]
    assert modes == [Mode.CONSOLIDATE, Mode.TURNS, Mode.CONSOLIDATE]
    reason = (await engine.event(first[1])).mode_reason
    assert reason == "Budget: 100% of the user's 0.02 USD per month is used."


async def test_a_budget_of_yesterday_is_not_spent_today(engine: Engine, model: Priced) -> None:
    await set_project(engine, budget={"project": {"tokens": 2 * TOKENS, "per": "day"}})
    await added(engine, "I live in Bern.")
    await move_costs_back(engine, days=1)
    event = await engine.event(await added(engine, "I like tea."))
    assert (event.mode, event.mode_reason) == (Mode.CONSOLIDATE, None)


@pytest.mark.parametrize(("days_before", "mode"), [(0, Mode.TURNS), (1, Mode.CONSOLIDATE)])
async def test_a_budget_per_month_begins_with_the_first_day_in_utc(
    engine: Engine, model: Priced, days_before: int, mode: Mode
) -> None:
    await set_project(engine, budget={"project": {"tokens": 2 * TOKENS, "per": "month"}})
    await added(engine, "I live in Bern.")
    first = "date_trunc('month', now() AT TIME ZONE 'UTC')::date"
    moved = text(f"UPDATE usage_daily SET day = {first} - CAST(:days AS integer)")
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(moved, {"days": days_before})
    assert (await engine.event(await added(engine, "I like tea."))).mode == mode


async def test_an_export_fails_by_name_when_the_budget_is_used_up(
    engine: Engine, model: Priced
) -> None:
    await added(engine, "I live in Bern.")
    await set_project(engine, budget={"project": {"tokens": TOKENS} | {"per": "day"}})
    question = Question(EventType.EXPORT, {"user_id": "maya"}, SCHEMA)
    event_id = await engine.add("export", options=AddOptions(question=question))
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.failure_code) == (Status.FAILED, FailureCode.BUDGET_EXCEEDED)
    assert event.failure_detail == "The project's 100 tokens per day are used up."
    assert "distil" not in model.calls


async def test_the_receipt_names_the_version_of_each_prompt(engine: Engine, model: Priced) -> None:
    shown = event_responses.event(await engine.event(await added(engine, "I live in Bern.")))
    assert shown["prompts"] == {"extract": "v1", "relate": "v1"}
    named = {run["stage"]: (run["model"], run["prompt"]) for run in shown["stages"]}
    assert named[StageName.EXTRACT] == ("fake/priced", "extract@v1")
    assert named[StageName.RETRIEVE] == (None, None)


async def move_costs_back(engine: Engine, *, days: int) -> None:
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(
            text("UPDATE usage_daily SET day = day - CAST(:days AS integer)"), {"days": days}
        )


async def test_the_graph_is_left_out_and_can_be_replayed_when_the_budget_ends_before_it(
    engine: Engine, model: Priced
) -> None:
    await set_project(engine, budget={"project": {"tokens": TOKENS, "per": "day"}})
    event = await engine.event(await added(engine, "I live in Bern."))
    assert (event.status, event.graph_status) == (Status.SUCCEEDED, "FAILED")
    assert event.failure_detail == (
        "BUDGET_EXCEEDED: The project's 100 tokens per day are used up."
    )
    assert model.calls == ["extract"]


async def test_facts_are_added_without_a_comparison_when_the_budget_ends_before_it(
    engine: Engine, model: Priced
) -> None:
    await added(engine, "I live in Bern.")
    event_id = await engine.add("I live in Porto now.")
    hint = await engine.run_until(StageName.CONSOLIDATE)
    await set_project(engine, budget={"project": {"tokens": TOKENS, "per": "day"}})
    assert hint.stage is StageName.CONSOLIDATE
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.mode) == (Status.SUCCEEDED, Mode.APPEND)
    assert event.mode_reason == "Budget: 100% of the project's 100 tokens per day is used."
    assert [line.outcome for line in event.receipt] == [Outcome.ADD]
    assert len(await engine.texts()) == 2
    assert "decide" not in model.calls
