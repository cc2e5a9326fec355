"""Writers that an erasure overtakes in a model's call: none of them brings a word or an id back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, insert, update

from pipeline.adapters.model_rules import RulesModel
from pipeline.curator import service as curator
from pipeline.domain.errors import Conflict, NotFound, StageError
from pipeline.domain.events import AddOptions, EventType, Question
from pipeline.domain.filters import parse
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.domain.suggestions import SuggestionKind
from pipeline.domain.summaries import SummaryAfter
from pipeline.domain.usage import Answer, Usage
from pipeline.domain.vectors import Vector
from pipeline.erasure import service as erasure
from pipeline.erasure.store import OwnerKey, erasures
from pipeline.events import service as event_service
from pipeline.ingest import profiles
from pipeline.ledger.tables import suggestions
from pipeline.memories import service as memory_service
from pipeline.memories.editing import MemoryEdit
from pipeline.models.wrapped import Ask, WrappedEmbedder, WrappedModel
from pipeline.suggestions import service as suggestion_service
from pipeline.summaries.service import Summarizer
from pipeline.versions import service as versions
from tests.support.embedder_hash import HashEmbedder
from tests.support.engine import RUN_LIMITS, Engine
from tests.support.raw_look import raw_look

T = TypeVar("T")
OWNER = OwnerKey("user", "wanda-4711")
WORDS = ("wanda-4711", "Zanzibar", "zanzibar")


@dataclass
class Pause:
    """A point where a writer waits: in the call of a model, whose answer it has already."""

    task: str

    def __post_init__(self) -> None:
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    async def wait(self, task: str) -> None:
        if task == self.task:
            self.reached.set()
            await self.go_on.wait()


class PausedModel(WrappedModel):
    """The rules, with a pause before the answer to one kind of question."""

    def __init__(self, pause: Pause) -> None:
        super().__init__(RulesModel())
        self._pause = pause

    async def _call(self, task: str, ask: Ask[T]) -> Answer[T]:
        answer = await super()._call(task, ask)
        await self._pause.wait(task)
        # As if a hosted model had been paid.
        return replace(answer, usage=Usage("zoo", 1, 1, 1, 0.1, "p"))


class PausedEmbedder(WrappedEmbedder):
    def __init__(self, pause: Pause) -> None:
        super().__init__(HashEmbedder())
        self._pause = pause

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors = await super().embed(texts)
        await self._pause.wait("embed")
        return vectors


@dataclass(frozen=True)
class Late:
    """An engine whose models pause once, after the owner has memories."""

    engine: Engine
    pause: Pause

    @property
    def scope(self) -> Scope:
        return self.engine.scope(OWNER.id)

    @property
    def embedder(self) -> PausedEmbedder:
        return PausedEmbedder(self.pause)

    @property
    def model(self) -> PausedModel:
        return PausedModel(self.pause)

    async def memory_id(self) -> UUID:
        tree = parse({"user_id": OWNER.id})
        page, _ = await self.engine.ledger.memories.page(
            self.scope.project_id, tree, expired=True, limit=1, offset=0
        )
        return page[0].id


async def add(late: Late) -> None:
    await late.engine.add("I own a Zanzibar flag.", user_id=OWNER.id)
    late.engine.with_model(late.model)
    await late.engine.drain()


async def dry_run(late: Late) -> None:
    messages = [Message(Role.USER, "I own a Zanzibar flag.")]
    engine = late.engine
    await engine.send(late.scope, messages, dry_run=True)
    engine.with_model(late.model)
    await engine.drain()


async def export(late: Late) -> None:
    shape = {"properties": {"summary": {"type": "string", "description": "all"}}}
    question = Question(EventType.EXPORT, {"agent_id": "bot"}, shape)
    engine, bots = late.engine, Scope(late.scope.project_id, agent_id="bot")
    await engine.send(bots, [], AddOptions(question=question))
    engine.with_model(late.model)
    await engine.drain()


async def profile(late: Late) -> None:
    """Generate the profile of the erased user."""
    engine, project_id = late.engine, late.scope.project_id
    shape = {"properties": {"summary": {"type": "string", "description": "all"}}}
    await engine.ledger.profiles.change(project_id, {"enabled": True, "schema": shape})
    engine.with_model(late.model)
    await profiles.trigger(project_id, OWNER.id, ledger=engine.ledger, dispatcher=engine.hints)
    await engine.drain()


async def summary(late: Late) -> None:
    ledger = late.engine.ledger
    [due] = await ledger.summaries.claim_due(limit=10, lease_s=300)
    await Summarizer(ledger.summaries, ledger.costs, late.model).summarize(due.lane_id)


async def curate(late: Late) -> None:
    ledger = late.engine.ledger
    await ledger.curator.start(late.scope, RUN_LIMITS)
    [hint] = await ledger.curator.sweep(limit=10)
    name = late.engine.services.embedder.name
    await curator.run(hint, ledger=ledger, model=late.model, embedder=name)


async def edit(late: Late) -> None:
    change = MemoryEdit(await late.memory_id(), {"text": "Zanzibar is far."})
    services = late.engine.services
    await memory_service.edit(
        late.scope.project_id, [change], editing=late.engine.ledger.editing, embedder=late.embedder,
        index=services.index,
    )  # fmt: skip


async def undo(late: Late) -> None:
    services = late.engine.services
    event_id = await late.engine.add("I moved to Bern.", user_id=OWNER.id)
    await late.engine.drain()
    await event_service.undo(
        late.scope.project_id, event_id, force=False, store=late.engine.ledger.undo,
        embedder=late.embedder, index=services.index,
    )  # fmt: skip


async def restore(late: Late) -> None:
    ledger, services = late.engine.ledger, late.engine.services
    project_id, memory_id = late.scope.project_id, await late.memory_id()
    change = MemoryEdit(memory_id, {"text": "It is far."})
    await memory_service.edit(
        project_id,
        [change],
        editing=ledger.editing,
        embedder=services.embedder,
        index=services.index,
    )
    await versions.restore(
        project_id, memory_id, 1, reason=None, restores=ledger.restores, embedder=late.embedder,
        index=services.index,
    )  # fmt: skip


async def accept_suggestion(late: Late) -> None:
    ledger, memory_id = late.engine.ledger, await late.memory_id()
    suggestion_id = uuid4()
    row = {
        "id": suggestion_id,
        "project_id": late.scope.project_id,
        "lane_id": late.scope.lane_id,
        "kind": SuggestionKind.UPDATE,
        "origin": "curator",
        "targets": [{"memory_id": str(memory_id), "version": 1}],
        "proposed_text": "Zanzibar is far.",
        "reason": "So it seems.",
        "content_hash": b"",
    }
    async with ledger.engine.begin() as connection:
        await connection.execute(insert(suggestions).values(row))
    await suggestion_service.decide(
        late.scope.project_id, suggestion_id, suggestion_service.Action.ACCEPT, by=uuid4(),
        ledger=ledger, embedder=late.embedder, index=late.engine.services.index,
    )  # fmt: skip


async def turns(late: Late) -> None:
    ledger, index = late.engine.ledger, late.engine.services.index
    await index.of(ledger.turn_vectors).read_with(late.embedder).catch_up()


WRITERS: dict[str, tuple[str, Callable[[Late], Awaitable[None]]]] = {
    "an add, extracted": ("extract", add),
    "an add, decided": ("decide", add),
    "an add, related": ("relate", add),
    "a dry run's kept answer": ("extract", dry_run),
    "an export over several users": ("distil", export),
    "the profile of the user": ("distil", profile),
    "a summary": ("summarize", summary),
    "the curator's suggestions": ("curate", curate),
    "a person's edit": ("embed", edit),
    "an undo": ("embed", undo),
    "a restore": ("embed", restore),
    "an accepted suggestion": ("embed", accept_suggestion),
    "the vectors of turns": ("embed", turns),
}


@pytest.mark.parametrize("goes_on", [False, True], ids=["erased", "erased and writes again"])
@pytest.mark.parametrize("writer", WRITERS)
async def test_a_writer_paused_in_a_models_call_brings_nothing_back(
    engine: Engine, writer: str, goes_on: bool
) -> None:
    task, write = WRITERS[writer]
    late = Late(engine, Pause(task))
    engine.services = replace(engine.services, summary_after=SummaryAfter(messages=2, tokens=999))
    for text in ("I live in Zanzibar.", "I like Zanzibar tea.", "I like Zanzibar teas."):
        await engine.add(text, user_id=OWNER.id)
    both = Scope(engine.project.id, user_id=OWNER.id, agent_id="bot")
    for scope, text in ((both, "I live in Zanzibar."), (engine.scope("jon"), "I live in Bern.")):
        messages = [Message(Role.USER, text)]
        await engine.send(scope, messages)
    await engine.drain()

    writing = asyncio.create_task(_written(write, late))
    await asyncio.wait_for(late.pause.reached.wait(), 60)
    await engine.ledger.erasures.erase(engine.project.id, OWNER)
    for _ in range(2):
        await erasure.finish(erasures=engine.ledger.erasures, index=engine.services.index)
        await _make_due(engine)
    engine.with_model(RulesModel())
    if goes_on:
        # The same id again: the scope has another history now.
        messages = [Message(Role.USER, "Hello, I like rye.")]
        hello = engine.send(late.scope, messages, AddOptions(infer=False))
        await hello
        await engine.drain()
    late.pause.go_on.set()
    await writing
    await engine.pass_time(3_600)
    await engine.sweep()
    await engine.drain()
    await engine.ledger.balance.fold()
    words = WORDS[1:] if goes_on else WORDS
    assert await raw_look(engine.ledger, words) == {}
    names = await engine.vectors.list_cols()
    stored = [r for name in names for r in await engine.vectors.list(name, where={}, limit=99)]
    assert not [r for r in stored if OWNER.id in str(r.payload) and not goes_on]
    assert (await engine.ledger.balance.totals()).balanced


async def _written(write: Callable[[Late], Awaitable[Any]], late: Late) -> None:
    """Run the writer. An error that says that its rows are gone is as good as writing nothing."""
    with suppress(StageError, NotFound, Conflict):
        await write(late)


async def _make_due(engine: Engine) -> None:
    async with engine.ledger.engine.begin() as connection:
        over = update(erasures).where(erasures.c.due_at.is_not(None))
        await connection.execute(over.values(due_at=func.now()))
