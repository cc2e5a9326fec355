"""Limit of concurrent searches: their order, and slots released by blocked searches."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from uuid import uuid4

import pytest

from pipeline.domain.errors import ModelUnavailable, Overloaded
from pipeline.domain.tenants import ProjectId
from pipeline.search import concurrency as turnstiles
from pipeline.search.concurrency import ConcurrencyLimit

MINE, OTHER = ProjectId(uuid4()), ProjectId(uuid4())


class Visitors:
    """Searches that hold their slots until the test ends them; `inside` is in order of entry."""

    def __init__(self, concurrency_limit: ConcurrencyLimit) -> None:
        self._turnstile = concurrency_limit
        self.inside: list[int] = []
        self._leave = [asyncio.Event() for _ in range(4)]

    async def visit(self, who: int, project: ProjectId = MINE) -> None:
        async with self._turnstile.turn(project):
            self.inside.append(who)
            await self._leave[who].wait()

    def leave(self, *those: int) -> None:
        for who in those:
            self._leave[who].set()


async def settled() -> None:
    """Let every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnstiles, "MOMENT_S", 60)


async def test_the_others_wait_and_come_in_by_their_order() -> None:
    visitors = Visitors(ConcurrencyLimit(2))
    async with asyncio.TaskGroup() as group:
        for who in range(4):
            group.create_task(visitors.visit(who))
        await settled()
        assert visitors.inside == [0, 1]
        visitors.leave(1)
        await settled()
        assert visitors.inside == [0, 1, 2]
        visitors.leave(0, 2, 3)
    assert visitors.inside == [0, 1, 2, 3]


async def test_projects_that_wait_take_turns() -> None:
    visitors = Visitors(ConcurrencyLimit(1))
    async with asyncio.TaskGroup() as group:
        for who, project in enumerate((MINE, MINE, MINE, OTHER)):
            group.create_task(visitors.visit(who, project))
            await settled()
        visitors.leave(0, 1, 2, 3)
    assert visitors.inside == [0, 1, 3, 2]


@pytest.mark.parametrize("granted", [False, True], ids=["waiting", "granted"])
async def test_a_search_that_is_cancelled_keeps_no_slot(granted: bool) -> None:
    visitors = Visitors(ConcurrencyLimit(1))
    first = asyncio.create_task(visitors.visit(0))
    second = asyncio.create_task(visitors.visit(1))
    third = asyncio.create_task(visitors.visit(2))
    await settled()
    if granted:
        first.cancel()  # gives its slot to the second one, which has not run since
        await asyncio.sleep(0)
    second.cancel()
    visitors.leave(0, 2)
    await asyncio.wait([first, second, third], timeout=60)
    assert second.cancelled()
    assert visitors.inside == [0, 2]


async def test_one_project_has_a_limited_number_of_searches_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turnstiles, "PROJECT_AT_ONCE", 2)
    concurrency_limit = ConcurrencyLimit()
    inside: list[str] = []
    leave = asyncio.Event()

    async def search(name: str, project: ProjectId = MINE) -> None:
        async with concurrency_limit.place(project, within_s=60):
            inside.append(name)
            await leave.wait()

    async with asyncio.TaskGroup() as group:
        for name in ("first", "second", "third"):
            group.create_task(search(name))
        group.create_task(search("other", OTHER))
        await settled()
        assert inside == ["first", "second", "other"]
        leave.set()
    assert inside == ["first", "second", "other", "third"]
    assert not concurrency_limit._under_way


class Away:
    """Searches of one project, each with an event that ends its remote call."""

    def __init__(self) -> None:
        self.limit = ConcurrencyLimit()
        self.log: list[str] = []
        self.answers = {name: asyncio.Event() for name in "abcd"}

    async def search(self, name: str, error: Exception | None = None) -> None:
        async with self.limit.place(MINE, within_s=60) as place:
            self.log.append(f"{name} begins")
            with suppress(ModelUnavailable):
                async with place.away():
                    self.log.append(f"{name} asks")
                    await self.answers[name].wait()
                    if error is not None:
                        raise error
            self.log.append(f"{name} goes on")
            await settled()
            self.log.append(f"{name} ends")


@pytest.mark.parametrize("error", [None, ModelUnavailable("down")], ids=["answered", "failed"])
async def test_a_search_leaves_its_place_while_it_waits_for_a_server_and_comes_back_to_one(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    monkeypatch.setattr(turnstiles, "PROJECT_AT_ONCE", 1)
    away = Away()
    async with asyncio.TaskGroup() as group:
        group.create_task(away.search("a", error))
        group.create_task(away.search("b"))
        await settled()
        assert away.log == ["a begins", "a asks", "b begins", "b asks"]
        away.answers["b"].set()
        away.answers["a"].set()
    assert away.log[4:] == ["b goes on", "b ends", "a goes on", "a ends"]
    assert not away.limit._under_way


async def test_searches_that_come_back_and_new_ones_take_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turnstiles, "PROJECT_AT_ONCE", 1)
    away = Away()
    async with asyncio.TaskGroup() as group:
        async with away.limit.place(MINE, within_s=60) as place, place.away():
            for name in "ab":
                group.create_task(away.search(name))
            await settled()
            async with away.limit.place(MINE, within_s=60):  # the only place
                for name in "cd":
                    group.create_task(away.search(name))
                    await settled()
                away.answers["a"].set()
                away.answers["b"].set()
                await settled()
        for answer in away.answers.values():
            answer.set()
    begun = [line for line in away.log[4:] if line.endswith(("begins", "goes on"))]
    assert begun[:4] == ["c begins", "a goes on", "d begins", "b goes on"]


async def test_few_searches_of_a_project_wait_for_a_server_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another one keeps its place until it may ask."""
    monkeypatch.setattr(turnstiles, "PROJECT_AT_ONCE", 1)
    monkeypatch.setattr(turnstiles, "PROJECT_AWAY", 1)
    away = Away()
    async with asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(away.search(name))
        await settled()
        assert away.log == ["a begins", "a asks", "b begins"]
        for answer in away.answers.values():
            answer.set()
    assert away.log.count("c ends") == 1


async def test_a_search_that_is_cancelled_while_it_is_away_frees_no_place_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turnstiles, "PROJECT_AT_ONCE", 1)
    away = Away()
    first = asyncio.create_task(away.search("a"))
    await settled()
    async with away.limit.place(MINE, within_s=60):
        first.cancel()
        other = asyncio.create_task(away.search("b"))
        await settled()
        assert away.log == ["a begins", "a asks"]
    away.answers["b"].set()
    await other
    assert first.cancelled()
    assert not away.limit._under_way


async def test_a_search_that_is_out_of_time_says_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turnstiles, "PROJECT_AT_ONCE", 1)
    limit = ConcurrencyLimit(1)
    never = asyncio.Event()
    async with limit.place(MINE, within_s=60), limit.turn(MINE):
        with pytest.raises(Overloaded, match="This project has as many searches") as own:
            async with limit.place(MINE, within_s=0):
                pytest.fail("there is one place")
        with pytest.raises(Overloaded, match="The server computes other searches") as all_others:
            async with limit.place(OTHER, within_s=0.01) as place, place.turn():
                pytest.fail("there is one slot")
        with pytest.raises(Overloaded, match="narrow its filter or top_k"):
            async with limit.place(OTHER, within_s=0.01):
                await never.wait()
    assert (own.value.server_wide, all_others.value.server_wide) == (False, True)


async def test_without_a_limit_all_pass() -> None:
    visitors = Visitors(ConcurrencyLimit())
    async with asyncio.TaskGroup() as group:
        for who in range(4):
            group.create_task(visitors.visit(who))
        await settled()
        assert visitors.inside == [0, 1, 2, 3]
        visitors.leave(0, 1, 2, 3)


async def test_a_blocked_visitor_lets_the_next_one_in_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does not release the slot a second time at its end."""
    concurrency_limit = ConcurrencyLimit(1)
    visitors = Visitors(concurrency_limit)
    async with asyncio.TaskGroup() as group:
        monkeypatch.setattr(turnstiles, "MOMENT_S", 1e-9)
        monkeypatch.setattr(turnstiles, "IDLE", 1e18)  # any loop idles
        group.create_task(visitors.visit(0))
        await settled()
        monkeypatch.setattr(turnstiles, "MOMENT_S", 60)
        group.create_task(visitors.visit(1))
        await settled()
        assert visitors.inside == [0, 1]
        visitors.leave(0)
        group.create_task(visitors.visit(2))
        await settled()
        assert visitors.inside == [0, 1]
        visitors.leave(1, 2)


async def test_a_search_keeps_its_slot_while_the_loop_is_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turnstiles, "MOMENT_S", 1e-9)
    monkeypatch.setattr(turnstiles, "IDLE", 0)  # no loop idles
    visitors = Visitors(ConcurrencyLimit(1))
    async with asyncio.TaskGroup() as group:
        group.create_task(visitors.visit(0))
        group.create_task(visitors.visit(1))
        await settled()
        assert visitors.inside == [0]
        visitors.leave(0, 1)
    assert visitors.inside == [0, 1]


async def test_who_fails_gives_his_place_back() -> None:
    concurrency_limit = ConcurrencyLimit(1)
    for _ in range(2):
        with pytest.raises(KeyError):
            async with concurrency_limit.turn(MINE):
                raise KeyError


async def test_large_searches_run_one_at_a_time_and_small_ones_beside_them() -> None:
    concurrency_limit = ConcurrencyLimit()
    inside: list[str] = []
    leave = asyncio.Event()

    async def search(name: str, rows: int, project: ProjectId = MINE) -> None:
        async with concurrency_limit.one_large(project, rows):
            inside.append(name)
            await leave.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(search("first", turnstiles.LARGE_ROWS + 1))
        group.create_task(search("second", turnstiles.LARGE_ROWS + 1))
        group.create_task(search("small", turnstiles.LARGE_ROWS))
        group.create_task(search("other", turnstiles.LARGE_ROWS + 1, OTHER))
        await settled()
        assert inside == ["first", "small", "other"]
        leave.set()
    assert inside == ["first", "small", "other", "second"]
    assert not concurrency_limit._large


async def test_a_large_search_that_waits_too_long_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turnstiles, "LARGE_WAIT_S", 0.01)
    concurrency_limit = ConcurrencyLimit()
    async with concurrency_limit.one_large(MINE, 1_000):
        with pytest.raises(Overloaded, match="fewer rows"):
            async with concurrency_limit.one_large(MINE, 1_000):
                pytest.fail("it ran beside the other")
    async with concurrency_limit.one_large(MINE, 1_000):
        pass
