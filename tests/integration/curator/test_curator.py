"""Runs of the curator: what is suggested, what is dropped, budgets, crashes and cancels."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select, update

from pipeline.adapters.model_rules import RulesModel
from pipeline.curator import service as curator
from pipeline.curator.store import CuratorRuns, CuratorRunView, RunHint, RunLimits
from pipeline.domain.curation import CurationRequest, Proposal
from pipeline.domain.errors import ModelUnavailable
from pipeline.domain.events import AddOptions
from pipeline.domain.facts import Fact
from pipeline.domain.messages import Message, Role
from pipeline.domain.modes import Mode
from pipeline.domain.suggestions import SuggestionKind, SuggestionState
from pipeline.domain.usage import Answer, Usage
from pipeline.ledger.tables import curator_runs, memories
from pipeline.models.prompted import PromptedModel
from pipeline.ports import ChatTurn, Completion, ExtractionRequest, MemoryModel
from pipeline.suggestions import service as suggestions
from pipeline.suggestions.service import Action
from pipeline.suggestions.store import StoredSuggestion
from tests.support.api_service import Service, serving
from tests.support.engine import Engine, with_stores
from tests.support.planted import Part, PlantedMemory, expected, planted

MANY = RunLimits(suggestions=1_000, tokens=10_000_000)
COST = Usage("fake/curator", 1, 900, 100, cost_usd=0.01, prompt="curate@v1")


class Planting(RulesModel):
    """Model that extracts each message as one fact, with its planted structure."""

    def __init__(self, store: Sequence[PlantedMemory]) -> None:
        super().__init__()
        self._store = {memory.text: memory for memory in store}

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        rows = [(m.message.content, m.source) for m in request.messages]
        return Answer(
            tuple(
                Fact(
                    content,
                    source,
                    subject=self._store[content].subject,
                    attribute=self._store[content].attribute,
                )
                for content, source in rows
            )
        )


@dataclass
class Oracle(RulesModel):
    """Model that knows the planted store, and takes look-alikes for repeats."""

    store: Sequence[PlantedMemory] = ()
    calls: int = 0

    def __post_init__(self) -> None:
        super().__init__()
        self.known = {memory.text: memory for memory in self.store}

    async def curate(self, request: CurationRequest) -> Answer[tuple[Proposal, ...]]:
        self.calls += 1
        proposals: list[Proposal] = []
        used: set[int] = set()
        for group in request.groups:
            for proposal in self._of(request, group):
                if used.isdisjoint(proposal.targets):
                    used.update(proposal.targets)
                    proposals.append(proposal)
        return Answer(tuple(proposals), COST)

    def _of(self, request: CurationRequest, group: Sequence[int]) -> list[Proposal]:
        centre = self.known.get(request.memories[group[0]].text)
        if centre is None:
            return []
        if centre.role is Part.JUNK:
            return [Proposal(SuggestionKind.DELETE, (group[0],), None, "Small talk.")]
        kind = (
            SuggestionKind.UPDATE if centre.role is Part.CONTRADICTION else SuggestionKind.COMBINE
        )
        for other in group[1:]:
            near = self.known.get(request.memories[other].text)
            if near and (near.role, near.pair) == (centre.role, centre.pair) and near.merged:
                return [Proposal(kind, (group[0], other), near.merged, "They belong together.")]
        return []


@dataclass
class Scripted:
    """LLM that gives one text as every answer."""

    answer: Callable[[str], str]
    name: str = "fake/scripted"
    prompts: list[str] = field(default_factory=list)

    async def complete(
        self, turns: Sequence[ChatTurn], *, schema_name: str, schema: object
    ) -> Completion:
        self.prompts.append(turns[-1].content)
        return Completion(self.answer(turns[-1].content), COST)

    async def close(self) -> None:
        """Nothing to release."""


def scripted(proposals: Callable[[int], list[dict[str, Any]]]) -> PromptedModel:
    """A model whose proposals are computed from the number of memories in the prompt."""

    def answer(prompt: str) -> str:
        count = sum(line.partition(" ")[0].isdigit() for line in prompt.splitlines())
        return json.dumps({"proposals": proposals(count)})

    return PromptedModel(Scripted(answer))


def everything_deleted(count: int) -> list[dict[str, Any]]:
    return [{"kind": "DELETE", "memories": [n + 1], "text": None} for n in range(count)]


def unknown_ids(count: int) -> list[dict[str, Any]]:
    return [
        {"kind": "COMBINE", "memories": [1, count + 1], "text": "All the same."},
        {"kind": "DELETE", "memories": [0]},
        {"kind": "UPDATE", "memories": [-1, 2], "text": "Other."},
        {"kind": "COMBINE", "memories": [2, 2], "text": "Twice."},
    ]


def everything_combined(count: int) -> list[dict[str, Any]]:
    return [{"kind": "COMBINE", "memories": [1, 2, 3, 4, 5], "text": "They are all the same."}]


BAD_MODELS: dict[str, MemoryModel] = {
    "everything is deleted": scripted(everything_deleted),
    "unknown ids": scripted(unknown_ids),
    "everything is combined": scripted(everything_combined),
    "prose": PromptedModel(Scripted(lambda _: "I would tidy up a bit here and there.")),
}


async def plant(engine: Engine, store: Sequence[PlantedMemory]) -> None:
    """Add the memories as messages with their times, 20 in an event.

    The last one first: then "no longer likes coffee" is there before what it ends, and stays beside
    it as a task for the curator.
    """
    engine.with_model(Planting(store))
    last_first = store[::-1]
    for start in range(0, len(store), 20):
        part = last_first[start : start + 20]
        for memory in part:
            await engine.send(
                engine.scope(),
                [Message(Role.USER, memory.text)],
                AddOptions(mode=Mode.APPEND),
                said_at=memory.said_at,
            )
        await engine.drain()


async def add_all(engine: Engine, *texts: str) -> None:
    """Add memories an hour apart."""
    store = [
        PlantedMemory(t, said_at=PlantedMemory("").said_at + timedelta(hours=n))
        for n, t in enumerate(texts)
    ]
    await plant(engine, store)


async def start(engine: Engine, limits: RunLimits = MANY) -> UUID:
    return await engine.ledger.curator.start(engine.scope(), limits)


async def carry_on(
    engine: Engine, model: MemoryModel, runs: CuratorRuns | None = None
) -> list[RunHint]:
    """Run the hints that the sweeper publishes now."""
    hints = await engine.ledger.curator.sweep(limit=10)
    ledger: Any = engine.ledger if runs is None else with_stores(engine.ledger, curator=runs)
    for hint in hints:
        await curator.run(hint, ledger=ledger, model=model, embedder=engine.services.embedder.name)
    return hints


async def curate(engine: Engine, model: MemoryModel, limits: RunLimits = MANY) -> CuratorRunView:
    """One run, until it has ended."""
    run_id = await start(engine, limits)
    await carry_on(engine, model)
    return await engine.ledger.curator.get(engine.project.id, run_id)


async def listed(
    engine: Engine, state: SuggestionState | None = SuggestionState.OPEN
) -> list[StoredSuggestion]:
    page = await engine.ledger.suggestions.page(
        engine.project.id, state=state, limit=1_000, offset=0
    )
    return list(page.rows)


def contents(rows: Sequence[StoredSuggestion]) -> set[tuple[SuggestionKind, frozenset[str]]]:
    return {(row.kind, frozenset(t.text or "" for t in row.targets)) for row in rows}


async def pass_time(engine: Engine, minutes: float) -> None:
    """Move the due times of all runs closer."""
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(
            update(curator_runs)
            .where(curator_runs.c.due_at.is_not(None))
            .values(due_at=curator_runs.c.due_at - timedelta(minutes=minutes))
        )


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as service:
        yield service


async def test_a_planted_store_is_tidied_precisely_and_a_second_run_adds_nothing(
    engine: Engine,
) -> None:
    store = planted()
    await plant(engine, store)
    before = await engine.texts()
    assert len(before) == len(store)
    model = Oracle(store)
    run = await curate(engine, model)
    assert (run.state, run.code) == ("SUCCEEDED", None)
    rows = await listed(engine)
    proposed, right = contents(rows), expected(store)
    assert len(proposed & right) / len(proposed) >= 0.95
    assert len(proposed & right) / len(right) >= 0.95
    # Each memory is in at most one suggestion, and nothing has changed.
    targets = [target.memory_id for row in rows for target in row.targets]
    assert len(targets) == len(set(targets))
    assert await engine.texts() == before
    again = await curate(engine, model)
    assert (again.state, again.suggested) == ("SUCCEEDED", 0)
    assert contents(await listed(engine)) == proposed
    # Accepted, the suggestions remove what is planted, and harm nothing else.
    for row in rows:
        await suggestions.decide(
            engine.project.id,
            row.id,
            Action.ACCEPT,
            by=engine.worker,
            ledger=engine.ledger,
            embedder=engine.services.embedder,
            index=engine.services.index,
        )
    after = set(await engine.texts())
    untouched = {m.text for m in store if m.role in (Part.PLAIN, Part.LOOK_ALIKE)}
    assert untouched <= after
    assert len(after) == len(store) - len(rows)
    done = await curate(engine, model)
    assert (done.state, done.suggested) == ("SUCCEEDED", 0)


@pytest.mark.parametrize("name", BAD_MODELS)
async def test_a_bad_model_harms_nothing(engine: Engine, name: str) -> None:
    store = [m for at, m in enumerate(planted()) if at % 5 == 0]
    await plant(engine, store)
    before, history = await engine.texts(), await engine.history_rows()
    run = await curate(engine, BAD_MODELS[name])
    assert await engine.texts() == before
    assert await engine.history_rows() == history
    rows = await listed(engine)
    assert all(row.kind is SuggestionKind.DELETE for row in rows)
    assert len(rows) <= 0.1 * len(store)
    if name == "prose":
        assert (run.state, run.code, run.malformed) == ("FAILED", "LLM_BAD_OUTPUT", 3)
    else:
        assert (run.state, run.suggested) == ("SUCCEEDED", len(rows))
        assert run.dropped + run.suggested > 0 or name == "unknown ids"


async def test_a_run_without_one_usable_answer_has_failed(engine: Engine) -> None:
    await plant(engine, planted()[:3])
    run = await curate(engine, BAD_MODELS["prose"])
    assert (run.state, run.code, run.malformed) == ("FAILED", "LLM_BAD_OUTPUT", 1)
    assert "1 of 1 answers could not be parsed." in (run.note or "")


async def test_rules_find_repeats_newer_values_and_empty_statements(engine: Engine) -> None:
    await engine.add("I live in Bern.")
    await engine.drain()
    moved = select(memories.c.id)
    async with engine.ledger.engine.begin() as connection:
        [first] = (await connection.scalars(moved)).all()
        await connection.execute(
            update(memories).where(memories.c.id == first).values(attribute="residence")
        )
    run = await curate(engine, RulesModel())
    assert (run.state, run.usage.calls) == ("SUCCEEDED", 0)
    assert await listed(engine) == []
    await add_all(engine, "Maya owns a red bicycle", "A red bicycle, Maya owns")
    await curate(engine, RulesModel())
    assert {row.kind for row in await listed(engine)} <= {SuggestionKind.COMBINE}


@pytest.mark.parametrize(
    "protection", [{"pinned": True}, {"edited_at": func.now()}, {"immutable": True}]
)
async def test_a_protected_memory_is_in_no_suggestion(
    engine: Engine, protection: dict[str, Any]
) -> None:
    await plant(engine, [m for m in planted() if m.role is Part.REPEAT and (m.pair or 0) < 3])
    [first, *_] = await engine.ledger.curator.memories(engine.scope(), embedder="", limit=1)
    async with engine.ledger.engine.begin() as connection:
        this = update(memories).where(memories.c.id == first[0].id)
        await connection.execute(this.values(**protection))
    for model in (RulesModel(), *BAD_MODELS.values()):
        await curate(engine, model)
    targets = {target.memory_id for row in await listed(engine) for target in row.targets}
    assert targets
    assert first[0].id not in targets


async def test_what_was_rejected_is_not_suggested_again(engine: Engine) -> None:
    store = [m for m in planted() if m.role is Part.REPEAT and m.pair == 1]
    await plant(engine, store)
    model = Oracle(store)
    await curate(engine, model)
    [row] = await listed(engine)
    await engine.ledger.decisions.decline(
        engine.project.id, row.id, SuggestionState.REJECTED, by=engine.worker
    )
    run = await curate(engine, model)
    assert (run.state, run.suggested) == ("SUCCEEDED", 0)
    assert model.calls == 2
    assert await listed(engine) == []


async def test_a_suggestion_that_became_outdated_is_renewed(engine: Engine) -> None:
    store = [m for m in planted() if m.role is Part.REPEAT and m.pair == 1]
    await plant(engine, store)
    await curate(engine, Oracle(store))
    [row] = await listed(engine)
    touched = row.targets[0].memory_id
    async with engine.ledger.engine.begin() as connection:
        newer = update(memories).where(memories.c.id == touched)
        await connection.execute(newer.values(version=memories.c.version + 1))
    assert await listed(engine) == []
    await curate(engine, Oracle(store))
    [renewed] = await listed(engine)
    assert (renewed.id, renewed.state) == (row.id, SuggestionState.OPEN)


async def test_the_budgets_of_a_run_end_it(engine: Engine) -> None:
    store = [m for m in planted() if m.role is Part.REPEAT and (m.pair or 0) < 15]
    await plant(engine, store)
    few = await curate(engine, Oracle(store), RunLimits(suggestions=2, tokens=10_000))
    assert (few.state, few.suggested) == ("SUCCEEDED", 2)
    assert "2 suggestions" in (few.note or "")
    cheap = await curate(engine, Oracle(store), RunLimits(suggestions=100, tokens=1_000))
    assert (cheap.steps, cheap.usage.calls) == (1, 1)
    assert "1000 tokens" in (cheap.note or "")


async def test_costs_count_in_the_usage_and_a_used_up_budget_ends_a_run(engine: Engine) -> None:
    store = [m for m in planted() if m.role is Part.REPEAT][:24]
    await plant(engine, store)
    budget = {"project": {"tokens": 1_500, "per": "day"}}
    await engine.ledger.projects.change(engine.project.id, {"budget": budget}, {})
    run = await curate(engine, Oracle(store))
    assert (run.state, run.steps) == ("SUCCEEDED", 2)
    assert "Budget" in (run.note or "")
    spending = await engine.ledger.costs.spending(engine.project.id)
    assert spending.models["fake/curator"].prompt_tokens == run.usage.prompt_tokens == 1_800
    mine = await engine.ledger.costs.spending(engine.project.id, user_id="maya")
    assert mine.models["fake/curator"].calls == 2


async def test_a_scope_has_one_open_run(engine: Engine) -> None:
    await add_all(engine, "Maya owns a bicycle")
    first = await start(engine)
    assert await start(engine) == first
    await carry_on(engine, RulesModel())
    assert await start(engine) != first


async def test_a_model_that_does_not_answer_is_asked_again_later(engine: Engine) -> None:
    store = [m for m in planted() if m.role is Part.REPEAT and (m.pair or 0) < 4]
    await plant(engine, store)

    class Down(RulesModel):
        async def curate(self, request: CurationRequest) -> Answer[tuple[Proposal, ...]]:
            raise ModelUnavailable("It does not answer.")

    run_id = await start(engine)
    await carry_on(engine, Down())
    assert await carry_on(engine, Down()) == []
    await pass_time(engine, 2)
    await carry_on(engine, Oracle(store))
    assert len(await listed(engine)) == 4
    second = await start(engine)
    assert second != run_id
    for _ in range(12):
        await carry_on(engine, Down())
        await pass_time(engine, 2)
    failed = await engine.ledger.curator.get(engine.project.id, second)
    assert (failed.state, failed.code) in {("FAILED", "LLM_UNAVAILABLE"), ("SUCCEEDED", None)}


async def test_memories_that_change_during_a_run_are_not_suggested(engine: Engine) -> None:
    store = [m for m in planted() if m.role is Part.REPEAT and (m.pair or 0) < 4]
    await plant(engine, store)

    class ChangingMemories(Oracle):
        async def curate(self, request: CurationRequest) -> Answer[tuple[Proposal, ...]]:
            answer = await super().curate(request)
            engine.with_model(RulesModel())
            await engine.add("I own a parrot.")
            await engine.drain()
            rows = await engine.ledger.memories.active(
                engine.project.id, [await _id_of(engine, store[0].text)]
            )
            await engine.ledger.editing.retire(engine.project.id, [rows[0].id])
            return answer

    run = await curate(engine, ChangingMemories(store))
    assert (run.state, run.suggested, run.dropped) == ("SUCCEEDED", 3, 1)
    assert all(store[0].text not in texts for _, texts in contents(await listed(engine)))
    assert "User owns a parrot" in " ".join(await engine.texts())


async def _id_of(engine: Engine, content: str) -> UUID:
    async with engine.ledger.engine.connect() as connection:
        query = select(memories.c.id).where(memories.c.text == content)
        memory_id: UUID = (await connection.scalars(query)).one()
        return memory_id


async def test_scheduled_runs_wait_for_idle_scopes_and_end_with_new_messages(
    engine: Engine,
) -> None:
    store = [m for m in planted() if m.role is Part.REPEAT and (m.pair or 0) < 4]
    await plant(engine, store)
    runs = engine.ledger.curator
    assert await runs.schedule(MANY, limit=10) == 0
    schedule = {"every_hours": 24.0, "idle_minutes": 60.0}
    await engine.ledger.projects.change(engine.project.id, {"curator": schedule}, {})
    assert await runs.schedule(MANY, limit=10) == 0  # a message arrived just now
    await engine.age(2 * 3600)
    assert await runs.schedule(MANY, limit=10) == 1
    assert await runs.schedule(MANY, limit=10) == 0  # it is open

    class Interrupted(Oracle):
        async def curate(self, request: CurationRequest) -> Answer[tuple[Proposal, ...]]:
            await engine.add("I own a parrot.")
            return await super().curate(request)

    await carry_on(engine, Interrupted(store))
    [run] = (await runs.page(engine.project.id, limit=10, offset=0)).rows
    assert (run.state, run.origin) == ("CANCELLED", "schedule")
    assert "message" in (run.note or "")


@pytest.mark.parametrize("curator", [{"every_hours": 12}, {"every_hours": 12, "idle_minutes": 60}])
async def test_a_schedule_without_idle_minutes_has_the_default(
    service: Service, curator: dict[str, int]
) -> None:
    """Also one that an earlier version stored without the field."""
    engine = service.engine
    await plant(engine, [m for m in planted() if m.role is Part.REPEAT and (m.pair or 0) < 4])
    await engine.ledger.projects.change(engine.project.id, {"curator": {"every_hours": 12}}, {})
    runs = engine.ledger.curator
    await engine.age(30 * 60)
    assert await runs.schedule(MANY, limit=10) == 0
    project = engine.project
    url = f"/api/v1/orgs/organizations/{project.organization_id}/projects/{project.id}/"
    changed = await service.client.patch(url, json={"curator": curator})
    assert changed.status_code == 200, changed.text
    assert (await service.client.get(url)).json()["curator"] == {
        "every_hours": 12.0,
        "idle_minutes": 60.0,
    }


async def test_runs_over_http(service: Service) -> None:
    engine = service.engine
    store = [m for m in planted() if m.role is Part.REPEAT and (m.pair or 0) < 4]
    await plant(engine, store)
    url = "/v1/curator/runs/"
    assert (await service.client.post(url, json={})).status_code == 400
    assert (await service.client.post(url, json={"user_id": "stranger"})).status_code == 404
    made = await service.client.post(url, json={"user_id": "maya", "suggestions": 3})
    assert made.status_code == 200, made.text
    run = made.json()
    assert (run["status"], run["limits"]["suggestions"]) == ("QUEUED", 3)
    await carry_on(engine, Oracle(store))
    done = (await service.client.get(f"{url}{run['id']}/")).json()
    assert (done["status"], done["suggested"]) == ("SUCCEEDED", 3)
    rows = (await service.client.get("/v1/suggestions/", params={"kind": "COMBINE"})).json()
    assert rows["count"] == 3
    [first] = rows["results"][:1]
    assert first["origin"] == "curator"
    assert [c["merged_into"] is None for c in first["changes"]] == [True, False]
    assert all(source["quote"] for source in first["sources"])
    other = (await service.client.post(url, json={"user_id": "maya"})).json()
    cancelled = await service.client.post(f"{url}{other['id']}/cancel/")
    assert cancelled.json()["status"] == "CANCELLED"
    assert (await service.client.get(url)).json()["count"] == 2


async def test_old_runs_of_a_scope_are_deleted_unless_a_suggestion_names_them(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.curator.store.KEPT_RUNS", 2)
    store = [memory for memory in planted() if memory.role is Part.REPEAT]
    await plant(engine, store)
    named = await curate(engine, Oracle(store))
    assert named.suggested
    later = [await curate(engine, Oracle()) for _ in range(4)]
    assert {run.suggested for run in later} == {0}
    page = await engine.ledger.curator.page(engine.project.id, limit=10, offset=0)
    assert [run.id for run in page.rows] == [later[3].id, later[2].id, named.id]
    assert page.count == 3
    assert contents(await listed(engine)) == expected(store)
