"""Background jobs of the sweeper survive unexpected errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline import telemetry
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


@pytest.mark.parametrize(
    "broken", ["resume", "restore", "resend_hints", "curate", "summarize", "let_go"]
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

    parts = ["resume", "restore", "resend_hints", "curate", "summarize", "let_go"]
    for name in parts:
        monkeypatch.setattr(Sweeper, name, part(name))
    sweeper = sweeper_with(None)
    counted = telemetry.sweeper_ticks._value.get()
    await sweeper.tick()
    assert done == parts
    assert sweeper.ticks == 1
    assert telemetry.sweeper_ticks._value.get() == counted + 1


def sweeper_with(retention: Any) -> Sweeper:
    nothing: Any = SimpleNamespace(now=None, due_lanes=None, circuits=None)
    nothing.curator = nothing.summaries = None
    nothing.engine = SimpleNamespace()
    nothing.engine.execution_options = lambda **_: None
    return Sweeper(nothing, cast("CeleryDispatcher", None), retention, nothing, RUN_LIMITS)


class FakeRetention:
    """Deletes nothing but erased events, of which there are `erased` for each look."""

    def __init__(self, *erased: int) -> None:
        self.erased = list(erased)

    def __getattr__(self, name: str) -> Callable[[], Any]:
        async def none() -> int:
            return 0

        return none

    async def forget_erased(self) -> int:
        return self.erased.pop(0)


async def test_erased_events_are_deleted_in_each_tick_until_none_is_left() -> None:
    retention = FakeRetention(1_000, 1_000, 3, 0, 7)
    sweeper = sweeper_with(retention)
    for _ in range(9):
        await sweeper.let_go()
    assert retention.erased == [7]  # the next look comes after the pause
