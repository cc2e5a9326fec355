"""Background jobs of the sweeper survive unexpected errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.vector_index.index import VectorIndex
from pipeline.vector_index.projector import Projector
from tests.support.engine import RUN_LIMITS
from tests.support.stack import wait_until
from workers import sweeper_jobs
from workers.dispatch import CeleryDispatcher
from workers.sweeper import Sweeper

WITHIN_S = 10.0


class Broken(Exception):
    """An error outside the documented errors of stores and ledger."""


async def test_a_chore_that_raises_is_tried_again() -> None:
    tries = 0

    async def chore() -> None:
        nonlocal tries
        tries += 1
        raise Broken

    async def tried_again() -> bool:
        return tries >= 2

    task = asyncio.create_task(sweeper_jobs._again_and_again(chore, pause_s=0.0, limit_s=1.0))
    await wait_until(tried_again, within_s=WITHIN_S, what="a second try")
    assert not task.done()
    task.cancel()


async def test_a_chore_that_hangs_is_given_up() -> None:
    async with asyncio.timeout(WITHIN_S):
        await sweeper_jobs.attempt(asyncio.Event().wait, limit_s=0.0)


async def test_a_projector_survives_an_answer_that_cannot_be_parsed() -> None:
    seen: list[UUID] = []

    class Index:
        def collection(self, _: Scope) -> str:
            return "one"

        async def catch_up(self, ids: Iterable[UUID]) -> int:
            seen.extend(ids)
            raise Broken

    projector = Projector(cast("VectorIndex", Index()))
    running = asyncio.create_task(projector.run())
    scope, ids = Scope(ProjectId(uuid4()), user_id="maya"), [uuid4(), uuid4()]
    for memory_id in ids:
        projector.schedule(scope, [memory_id])

        async def tried(wanted: UUID = memory_id) -> bool:
            return wanted in seen

        await wait_until(tried, within_s=WITHIN_S, what="the projector's try")
    assert not running.done()
    running.cancel()


@pytest.mark.parametrize(
    "broken", ["resume", "restore", "requeue", "curate", "summarize", "let_go"]
)
async def test_each_part_of_a_tick_runs_whatever_the_others_raise(
    monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    done: list[str] = []

    def part(name: str) -> Callable[..., Any]:
        async def run(_: Sweeper) -> None:
            done.append(name)
            if name == broken:
                raise Broken

        return run

    parts = ["resume", "restore", "requeue", "curate", "summarize", "let_go"]
    for name in parts:
        monkeypatch.setattr(Sweeper, name, part(name))
    nothing: Any = SimpleNamespace(now=None, due_lanes=None, circuits=None)
    nothing.curator = nothing.summaries = None
    nothing.engine = SimpleNamespace()
    nothing.engine.execution_options = lambda **_: None
    sweeper = Sweeper(nothing, cast("CeleryDispatcher", None), nothing, nothing, RUN_LIMITS)
    await sweeper.tick()
    assert done == parts
    assert sweeper.ticks == 1
