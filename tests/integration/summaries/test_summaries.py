"""Rolling summaries: when they are due, what they are made of, and what makes them go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import MalformedAnswer, ModelUnavailable, StageError
from pipeline.domain.events import AddOptions
from pipeline.domain.facts import Fact
from pipeline.domain.graph.values import GraphChanges, RelationRequest
from pipeline.domain.modes import Mode
from pipeline.domain.summaries import SummaryAfter, SummaryUpdate
from pipeline.domain.usage import Answer, FailedTry, Usage
from pipeline.events.service import replay_graph
from pipeline.ledger.tables import metadata
from pipeline.ports import ExtractionRequest
from pipeline.stores import Ledger
from pipeline.summaries import store as summary_store
from pipeline.summaries.service import Summarizer
from tests.support.api_service import MAYA, Service, serving

SUMMARIES = "/v1/summaries/"
LEASE_S = 300.0


@dataclass
class Summing(RulesModel):
    """A summary is what was said so far; `fails` is raised in place of one."""

    fails: StageError | None = None
    requests: list[SummaryUpdate] = field(default_factory=list)
    extractions: list[ExtractionRequest] = field(default_factory=list)

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        self.extractions.append(request)
        return await super().extract(request)

    async def summarize(self, request: SummaryUpdate) -> Answer[str]:
        self.requests.append(request)
        if self.fails is not None:
            raise self.fails
        parts = [request.previous, *(sourced.message.content for sourced in request.messages)]
        failed = FailedTry("LLM_BAD_OUTPUT", Usage("fake/first", 1, 7, 3, 0.5), 1.0)
        usage = Usage("fake/summing", 1, 90, 10, 0.01, "summary@v1", (failed,))
        return Answer(" ".join(part for part in parts if part), usage)


class NoGraph(RulesModel):
    """Rules that fail in `relate`."""

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        raise MalformedAnswer("no JSON")


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


@pytest.fixture
def model(service: Service) -> Summing:
    summing = Summing()
    engine = service.engine
    engine.with_model(summing)
    engine.services = replace(engine.services, summary_after=SummaryAfter(messages=2, tokens=100))
    return summing


async def say(service: Service, *texts: str, **options: Any) -> UUID:
    event_id = await service.engine.add(*texts, options=AddOptions(**options))
    await service.engine.drain()
    return event_id


def summarizer(service: Service, model: Summing) -> Summarizer:
    ledger = service.engine.ledger
    return Summarizer(ledger.summaries, ledger.costs, model)


async def summarize(service: Service, model: Summing) -> int:
    """Make all due summaries, as the sweeper and the workers do. Returns their number."""
    engine = service.engine
    due = await engine.ledger.summaries.claim_due(limit=10, lease_s=LEASE_S)
    for summary in due:
        await summarizer(service, model).summarize(summary.lane_id)
    return len(due)


async def shown(service: Service) -> dict[str, Any]:
    answer = await service.client.get(SUMMARIES, params=MAYA)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def texts(service: Service) -> list[str]:
    return [row["summary"] for row in (await shown(service))["results"]]


async def undo(service: Service, event_id: UUID) -> None:
    answer = await service.client.post(f"/v1/event/{event_id}/undo/")
    assert answer.status_code == 200, answer.text


async def execute(service: Service, statement: str) -> None:
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(text(statement))


async def test_a_summary_is_due_after_enough_messages_and_the_next_one_builds_on_it(
    service: Service, model: Summing
) -> None:
    await say(service, "I live in Bern.")
    assert await summarize(service, model) == 0
    await say(service, "I work at Bosch.")
    assert await summarize(service, model) == 1
    assert await summarize(service, model) == 0
    await say(service, "I like tea.", "I like jazz.")
    assert await summarize(service, model) == 1
    before = "I live in Bern. I work at Bosch."
    assert await texts(service) == [f"{before} I like tea. I like jazz.", before]
    assert [request.previous for request in model.requests] == [None, before]
    page = await shown(service)
    assert [row["current"] for row in page["results"]] == [True, False]
    newest = page["results"][0]
    assert (newest["version"], newest["messages"]) == (2, 2)
    assert (newest["model"], newest["prompt"]) == ("fake/summing", "summary@v1")
    assert page["pending"] == {"messages": 0, "tokens": 0, "due_at": None, "reason": None}


async def test_many_tokens_make_it_due_earlier(service: Service, model: Summing) -> None:
    await say(service, "I live in Bern. " * 40)
    assert await summarize(service, model) == 1


async def test_the_next_extraction_gets_the_summary_of_what_was_before(
    service: Service, model: Summing
) -> None:
    await say(service, "I live in Bern.", "I work at Bosch.")
    await summarize(service, model)
    await say(service, "I like tea.")
    assert [request.summary for request in model.extractions] == [
        None,
        "I live in Bern. I work at Bosch.",
    ]


async def test_an_unusable_answer_leaves_the_previous_version_and_shows_the_reason(
    service: Service, model: Summing
) -> None:
    await say(service, "I live in Bern.", "I work at Bosch.")
    await summarize(service, model)
    model.fails = MalformedAnswer("the summary lacks 2 dates")
    model.fails.usage = Usage("fake/summing", 2, 50, 5)
    await say(service, "I like tea.", "I like jazz.")
    await summarize(service, model)
    page = await shown(service)
    assert [row["summary"] for row in page["results"]] == ["I live in Bern. I work at Bosch."]
    assert page["pending"]["reason"] == "LLM_BAD_OUTPUT: the summary lacks 2 dates"
    assert page["pending"]["due_at"] is not None
    assert await summarize(service, model) == 0  # only after a pause
    model.fails = None
    await execute(service, "UPDATE summary_states SET claimed_until = NULL, due_at = now()")
    await summarize(service, model)
    page = await shown(service)
    assert (page["count"], page["pending"]["reason"]) == (2, None)


async def test_an_outage_is_tried_again(service: Service, model: Summing) -> None:
    model.fails = ModelUnavailable("no answer", retry_after_s=7)
    await say(service, "I live in Bern.", "I work at Bosch.")
    await summarize(service, model)
    page = await shown(service)
    assert page["pending"]["reason"] == "LLM_UNAVAILABLE: no answer"
    assert page["pending"]["due_at"] is not None


async def test_a_lost_task_is_due_again_after_its_lease(service: Service, model: Summing) -> None:
    await say(service, "I live in Bern.", "I work at Bosch.")
    summaries = service.engine.ledger.summaries
    assert len(await summaries.claim_due(limit=10, lease_s=LEASE_S)) == 1
    await say(service, "I like tea.")  # does not make it due twice
    assert await summarize(service, model) == 0
    passed = f"due_at = due_at - interval '{LEASE_S} seconds'"
    await execute(service, f"UPDATE summary_states SET claimed_until = NULL, {passed}")
    assert await summarize(service, model) == 1
    assert len(await texts(service)) == 1


async def test_of_two_workers_at_one_version_one_is_stored(
    service: Service, model: Summing
) -> None:
    await say(service, "I live in Bern.", "I work at Bosch.")
    summaries = service.engine.ledger.summaries
    [due] = await summaries.claim_due(limit=10, lease_s=LEASE_S)
    first, second = await summaries.task(due.lane_id), await summaries.task(due.lane_id)
    assert first is not None
    assert second is not None
    usage = Usage("fake/summing", 1)
    assert [await summaries.save(task, "text", usage) for task in (first, second)] == [True, False]
    assert len(await texts(service)) == 1


async def test_messages_have_the_times_of_their_speakers(service: Service, model: Summing) -> None:
    await say(service, "I live in Bern.", utc_offset=540)
    await say(service, "I work at Bosch.")
    summaries = service.engine.ledger.summaries
    [due] = await summaries.claim_due(limit=10, lease_s=LEASE_S)
    task = await summaries.task(due.lane_id)
    assert task is not None
    offsets = [message.said_at.utcoffset() for message in task.request.messages]
    assert offsets == [timedelta(hours=9), timedelta(0)]


async def test_an_undone_event_leaves_the_summary(service: Service, model: Summing) -> None:
    await say(service, "I live in Bern.", "I work at Bosch.")
    await summarize(service, model)
    secret = await say(service, "I like tea.", "I like jazz.")
    await summarize(service, model)
    await say(service, "I have a cat.", "I have a dog.")
    await summarize(service, model)
    await undo(service, secret)
    assert await texts(service) == ["I live in Bern. I work at Bosch."]
    assert await summarize(service, model) == 1
    rebuilt = "I live in Bern. I work at Bosch. I have a cat. I have a dog."
    assert (await texts(service))[0] == rebuilt


async def test_an_event_whose_graph_is_replayed_is_summarized_once(
    service: Service, model: Summing
) -> None:
    engine = service.engine
    engine.with_model(NoGraph())
    secret = await say(service, "I live in Bern.")
    engine.with_model(model)
    await say(service, "I work at Bosch.")
    await summarize(service, model)
    await replay_graph(
        engine.project.id, secret, dead_letters=engine.ledger.dead_letters, dispatcher=engine.hints
    )
    await engine.drain()
    await summarize(service, model)
    await say(service, "I like tea.", "I have a cat.")
    await summarize(service, model)
    assert (await texts(service))[0].count("Bern") == 1
    await undo(service, secret)
    await summarize(service, model)
    assert await texts(service) == ["I work at Bosch. I like tea. I have a cat."]


async def test_an_undo_refuses_the_version_that_is_being_made(
    service: Service, model: Summing
) -> None:
    secret = await say(service, "I live in Bern.", "I work at Bosch.")
    summaries = service.engine.ledger.summaries
    [due] = await summaries.claim_due(limit=10, lease_s=LEASE_S)
    task = await summaries.task(due.lane_id)
    assert task is not None
    await undo(service, secret)
    assert not await summaries.save(task, "I live in Bern.", Usage("fake/summing", 1))
    assert await texts(service) == []


async def test_a_deleted_scope_has_no_summary_until_the_deletion_is_undone(
    service: Service, model: Summing
) -> None:
    await say(service, "I live in Bern.", "I work at Bosch.")
    await summarize(service, model)
    deletion = await service.client.delete("/v1/memories/", params=MAYA)
    assert await texts(service) == []
    await say(service, "I like tea.")
    assert model.extractions[-1].summary is None
    await say(service, "I like jazz.")
    await summarize(service, model)
    assert await texts(service) == ["I like tea. I like jazz."]
    undone = await service.client.post(f"/v1/event/{deletion.json()['event_id']}/undo/")
    assert undone.status_code == 200, undone.text
    assert await texts(service) == ["I live in Bern. I work at Bosch."]
    await summarize(service, model)
    assert (await texts(service))[0] == (
        "I live in Bern. I work at Bosch. I like tea. I like jazz."
    )


async def test_an_erasure_deletes_the_versions_and_refuses_a_late_one(
    service: Service, model: Summing
) -> None:
    await say(service, "I live in Bern.", "I work at Bosch.")
    await summarize(service, model)
    await say(service, "I like tea.", "I like jazz.")
    summaries = service.engine.ledger.summaries
    [due] = await summaries.claim_due(limit=10, lease_s=LEASE_S)
    task = await summaries.task(due.lane_id)
    assert task is not None
    await service.client.delete("/v2/entities/user/maya/")
    assert not await summaries.save(task, "late", Usage("fake/summing", 1))
    await summarizer(service, model).summarize(due.lane_id)
    async with service.engine.ledger.engine.connect() as connection:
        for name in ("summaries", "summary_states"):
            assert (await connection.execute(metadata.tables[name].select())).all() == []


async def test_costs_are_those_of_the_project_and_the_user(
    service: Service, model: Summing
) -> None:
    await say(service, "I live in Bern.", "I work at Bosch.")
    await summarize(service, model)
    costs = service.engine.ledger.costs
    for user_id in (None, "maya"):
        spending = await costs.spending(service.engine.project.id, user_id=user_id)
        assert {name: paid.prompt_tokens for name, paid in spending.models.items()} == {
            "fake/summing": 90,
            "fake/first": 7,
        }
        assert spending.total.cost_usd == pytest.approx(0.51)


async def test_a_used_up_budget_makes_no_call(service: Service, model: Summing) -> None:
    await say(service, "I live in Bern.", "I work at Bosch.")
    budget = {"project": {"tokens": 0, "per": "day"}}
    await service.engine.ledger.projects.change(service.engine.project.id, {"budget": budget}, {})
    await summarize(service, model)
    assert model.requests == []
    assert "Budget" in (await shown(service))["pending"]["reason"]


@pytest.mark.parametrize("options", [{"mode": Mode.TURNS}, {"infer": False}, {"procedural": True}])
async def test_other_adds_are_no_conversation(
    service: Service, model: Summing, options: dict[str, Any]
) -> None:
    await say(service, "I live in Bern.", "I work at Bosch.", "I like tea.", **options)
    assert await summarize(service, model) == 0


async def test_a_replay_of_the_scope_has_the_summary_of_then_and_makes_none(
    service: Service, model: Summing
) -> None:
    await say(service, "I live in Bern.", "I work at Bosch.")
    await summarize(service, model)
    # Other options: the copies of the two adds share no batch either.
    await say(service, "I like tea.", "I like jazz.", metadata={"room": 2})
    await summarize(service, model)
    count = len(model.extractions)
    answer = await service.client.post("/v1/replays/", json={"user_id": "maya"})
    assert answer.status_code == 200, answer.text
    await service.engine.drain()
    before_each = [request.summary for request in model.extractions[count:]]
    assert before_each == [None, "I live in Bern. I work at Bosch."]
    assert await summarize(service, model) == 0


async def test_a_backlog_is_summarized_in_steps(
    service: Service, model: Summing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary_store, "MOST_TOKENS", 10)
    await say(service, "I live in Bern.", "I work at Bosch.")
    await summarize(service, model)
    for line in ("I like tea, and I like jazz.", "I have a cat and I have a dog.", "I swim."):
        await say(service, line)
    assert [await summarize(service, model) for _ in range(3)] == [1, 1, 0]
    assert [len(request.messages) for request in model.requests] == [2, 1, 2]
    assert (await texts(service))[0].endswith("I swim.")


async def test_a_scope_without_ids_is_refused(service: Service, model: Summing) -> None:
    assert (await service.client.get(SUMMARIES)).status_code == 400
    unknown = await service.client.get(SUMMARIES, params={"user_id": "unknown"})
    assert unknown.json()["results"] == []


async def test_a_task_that_is_published_twice_calls_the_model_once(
    service: Service, model: Summing
) -> None:
    await say(service, "I live in Bern.", "I work at Bosch.")
    summaries = service.engine.ledger.summaries
    [due] = await summaries.claim_due(limit=10, lease_s=LEASE_S)
    assert await summaries.claim(due.lane_id, lease_s=LEASE_S)
    assert not await summaries.claim(due.lane_id, lease_s=LEASE_S)  # the first one is at work
    passed = f"UPDATE summary_states SET claimed_until = claimed_until - interval '{LEASE_S} s'"
    await execute(service, passed)
    assert await summaries.claim(due.lane_id, lease_s=LEASE_S)  # the first one has died


async def test_a_scope_keeps_a_bounded_number_of_versions(
    service: Service, model: Summing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.summaries.store.KEPT_VERSIONS", 2)
    for n in range(4):
        await say(service, f"I like dish {n}.", f"I cook dish {n}.")
        assert await summarize(service, model) == 1
    assert [row["version"] for row in (await shown(service))["results"]] == [4, 3]
