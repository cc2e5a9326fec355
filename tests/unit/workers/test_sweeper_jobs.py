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


class Endless:
    """Deliveries that never end, as with receivers that always have some."""

    def __init__(self) -> None:
        self.begun = 0

    async def deliver(self) -> None:
        self.begun += 1
        await asyncio.Event().wait()

    async def close(self) -> None: ...


class Sealing:
    """Stores of which only the seals do something: they count their runs."""

    def __init__(self) -> None:
        self.runs = 0

    def __getattr__(self, name: str) -> Sealing:
        return self

    async def seal(self) -> None:
        self.runs += 1


async def test_deliveries_go_on_for_longer_than_any_other_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endless, stores = Endless(), Sealing()
    monkeypatch.setattr(sweeper_jobs, "CHORE_S", 0.0)
    monkeypatch.setattr("pipeline.bootstrap.build_webhook_delivery", lambda *_: (endless, endless))
    settings: Any = SimpleNamespace(sweep_s=0.0, profile_pause_s=60.0)
    dispatcher: Any = None

    async def others_ran_often() -> bool:
        return stores.runs >= 5

    async with sweeper_jobs.under_way(settings, cast("Any", stores), dispatcher):
        await wait_until(others_ran_often, within_s=WITHIN_S, what="runs of another job")
        assert endless.begun == 1


async def test_jobs_do_not_begin_at_the_same_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them would open a connection, and the pool keeps it."""
    endless, begun = Endless(), list[str]()
    monkeypatch.setattr("pipeline.bootstrap.build_webhook_delivery", lambda *_: (endless, endless))

    async def attempt(chore: Callable[..., Any], *, limit_s: float | None) -> None:
        begun.append(getattr(chore, "__name__", ""))

    monkeypatch.setattr(sweeper_jobs, "attempt", attempt)
    settings: Any = SimpleNamespace(sweep_s=3_600.0, profile_pause_s=60.0)

    async def first_began() -> bool:
        return bool(begun)

    async with sweeper_jobs.under_way(settings, cast("Any", Sealing()), cast("Any", None)):
        await wait_until(first_began, within_s=WITHIN_S, what="the first job")
        assert begun == ["erase"]


PARTS = [
    *("resume", "restore", "resend_hints", "curate", "summarize"),
    *("close_conflicts", "let_go"),
]


@pytest.mark.parametrize("broken", PARTS)
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

    for name in PARTS:
        monkeypatch.setattr(Sweeper, name, part(name))
    sweeper = sweeper_with(FakeRetention())
    counted = telemetry.sweeper_ticks._value.get()
    await sweeper.tick()
    assert done == PARTS
    assert sweeper.ticks == 1
    assert telemetry.sweeper_ticks._value.get() == counted + 1


def sweeper_with(retention: Any) -> Sweeper:
    nothing: Any = SimpleNamespace(now=None, due_lanes=None, circuits=None)
    nothing.curator = nothing.summaries = nothing.conflicts = None
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


class Partial(FakeRetention):
    """Cannot delete keys, and hangs with outputs; counts the other deletions."""

    def __init__(self) -> None:
        super().__init__(0)
        self.done: set[str] = set()

    def __getattr__(self, name: str) -> Callable[[], Any]:
        async def delete() -> int:
            self.done.add(name)
            return 1

        return delete

    async def forget_keys(self) -> int:
        raise Broken

    async def drop_outputs(self) -> int:
        await asyncio.Event().wait()
        return 0


async def test_rows_that_cannot_be_deleted_keep_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.sweeper.DELETION_S", 0.0)
    retention = Partial()
    await sweeper_with(retention).let_go()
    assert {"forget_answers", "forget_audit", "forget_samples", "forget_usage"} <= retention.done


class Keys(FakeRetention):
    """Has this many keys to delete for each look."""

    def __init__(self, *keys: int) -> None:
        super().__init__(0)
        self.keys = list(keys)

    async def forget_keys(self) -> int:
        return self.keys.pop(0)


async def test_a_deletion_pauses_after_a_look_that_found_no_rows() -> None:
    retention = Keys(1_000, 5, 0, 7)
    sweeper = sweeper_with(retention)
    for _ in range(6):
        await sweeper.let_go()
    assert retention.keys == [7]


async def test_erased_events_are_deleted_in_each_tick_until_none_is_left() -> None:
    retention = FakeRetention(1_000, 1_000, 3, 0, 7)
    sweeper = sweeper_with(retention)
    for _ in range(9):
        await sweeper.let_go()
    assert retention.erased == [7]  # the next look comes after the pause
