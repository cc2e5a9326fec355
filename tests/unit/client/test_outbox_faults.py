"""The outbox and adds that get a 500: whose fault is it, the add's or the server's?"""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from memlane_client.outbox.queue import GIVE_UP_S, MOST_TRIES
from memlane_client.outbox.sender import Sender

from tests.support.outbox_api import HOUR_S, FakeApi, Simulation, add, bad_fails, refused


async def test_an_add_that_fails_alone_holds_up_its_scope_only_and_is_then_set_aside(
    api: FakeApi, tmp_path: Path
) -> None:
    run = Simulation(api, tmp_path)
    bad = add("bad")
    run.journal.append(bad)
    run.journal.append(add("next"))
    api.answer = bad_fails
    others: list[str] = []

    def chat() -> None:
        assert len(api.accepted["other"]) >= len(others) - 1  # they do not wait for the bad one
        if not run.journal.refused():
            others.append(f"turn {len(others)}")
            run.journal.append(add(others[-1], "other"))

    await run.until(HOUR_S, each=chat)
    [row] = run.journal.refused()
    assert (row["key"], row["status"], row["body"]) == (bad.key, 500, bad.body)
    assert api.requests - len(api.events) == MOST_TRIES
    assert run.now > 60
    assert api.accepted == {"maya": ["next"], "other": others}


async def test_no_add_is_set_aside_while_the_server_accepts_none(
    api: FakeApi, tmp_path: Path
) -> None:
    """A server that fails for days fails for every add, and each of them is kept."""
    run = Simulation(api, tmp_path)
    users = [f"user {number}" for number in range(5)]
    for user_id in users:
        run.journal.append(add("bad", user_id))
    api.answer = lambda request: bad_fails(request) if run.now < 100 * HOUR_S else None
    await run.until(200 * HOUR_S)
    assert api.accepted == {user_id: ["bad"] for user_id in users}
    assert api.requests - len(users) <= 100 * HOUR_S / 15 + 10
    assert run.journal.refused() == []


@pytest.mark.parametrize("bad", [1, 3, 12])
async def test_adds_that_fail_in_the_only_scope_are_set_aside_once_the_next_one_is_accepted(
    api: FakeApi, tmp_path: Path, bad: int
) -> None:
    run = Simulation(api, tmp_path)
    texts = [*(f"bad {number}" for number in range(bad)), "next", "last"]
    for text in texts:
        run.journal.append(add(text))
    api.answer = bad_fails
    await run.until(2 * HOUR_S)
    rows = run.journal.refused()
    assert [row["body"]["messages"][0]["content"] for row in rows] == texts[:bad]
    assert {row["status"] for row in rows} == {500}
    assert api.accepted == {"maya": ["next", "last"]}
    failed = api.requests - len(api.events)
    assert MOST_TRIES * bad <= failed < 4 * MOST_TRIES * bad


async def test_an_add_that_fails_in_the_only_scope_waits_until_a_later_add_shows_its_fault(
    api: FakeApi, tmp_path: Path
) -> None:
    run = Simulation(api, tmp_path)
    run.journal.append(add("bad"))
    api.answer = bad_fails
    await run.until(HOUR_S)
    assert run.journal.refused() == []
    run.journal.append(add("next"))
    await run.until(2 * HOUR_S)
    assert [row["status"] for row in run.journal.refused()] == [500]
    assert api.accepted == {"maya": ["next"]}


async def test_a_server_that_fails_for_days_for_the_only_scope_loses_neither_adds_nor_order(
    api: FakeApi, tmp_path: Path
) -> None:
    run = Simulation(api, tmp_path)
    texts = [f"bad {number}" for number in range(30)]
    for text in texts:
        run.journal.append(add(text))
    api.answer = lambda request: bad_fails(request) if run.now < 100 * HOUR_S else None
    await run.until(200 * HOUR_S)
    assert api.accepted == {"maya": texts}
    assert run.journal.refused() == []
    assert api.requests <= 2 * (100 * HOUR_S / 15 + 10) + len(texts)


async def test_an_add_is_sent_while_the_oldest_one_of_another_scope_fails(
    api: FakeApi, tmp_path: Path
) -> None:
    run = Simulation(api, tmp_path)
    run.journal.append(add("bad"))
    api.answer = bad_fails
    good = [add("good", "other")]

    def chat() -> None:
        if run.now > HOUR_S and good:
            run.journal.append(good.pop())

    await run.until(HOUR_S + 90, each=chat)
    assert api.accepted == {"other": ["good"]}


@pytest.mark.parametrize("users", [1, 3])
async def test_adds_that_fail_without_any_other_are_set_aside_after_a_week(
    api: FakeApi, tmp_path: Path, users: int
) -> None:
    run = Simulation(api, tmp_path, longest_s=1_200)
    bad = [add(f"bad {number}", f"user {number % users}") for number in range(2 * users)]
    for item in bad:
        run.journal.append(item)
    api.answer = bad_fails
    await run.until(GIVE_UP_S - HOUR_S)
    assert run.journal.refused() == []
    await run.until(GIVE_UP_S + 12 * HOUR_S)
    assert {row["key"] for row in run.journal.refused()} == {item.key for item in bad}
    assert run.journal.pending() == []


async def test_the_week_of_a_failing_add_goes_on_in_the_next_process(
    api: FakeApi, tmp_path: Path
) -> None:
    first = Simulation(api, tmp_path)
    first.journal.append(add("bad"))
    api.answer = bad_fails
    await first.until(60)
    second = Simulation(api, tmp_path)
    second.now = GIVE_UP_S + 60
    await second.until(GIVE_UP_S + HOUR_S)
    assert [row["status"] for row in second.journal.refused()] == [500]


async def test_a_server_that_was_down_for_a_week_sets_nothing_aside_at_its_first_fault(
    api: FakeApi, tmp_path: Path
) -> None:
    run = Simulation(api, tmp_path, longest_s=1_200)
    run.journal.append(add("bad"))
    api.answer = refused
    await run.until(GIVE_UP_S)
    api.answer = bad_fails
    await run.until(GIVE_UP_S + HOUR_S)
    api.answer = lambda _: None
    await run.until(GIVE_UP_S + 2 * HOUR_S)
    assert run.journal.refused() == []
    assert api.accepted == {"maya": ["bad"]}


async def test_a_server_that_recovers_between_two_adds_sets_none_aside(
    api: FakeApi, tmp_path: Path
) -> None:
    run = Simulation(api, tmp_path)
    texts = [f"bad {number:02}" for number in range(30)]
    for text in texts:
        run.journal.append(add(text))
    api.answer = bad_fails
    async with api.connect() as http:
        sender = Sender(run.journal, http, run.ends.append, clock=lambda: run.now)
        while run.now < HOUR_S:
            run.now += await sender.step() or 0
        tried: list[bytes] = []

        def recover(request: httpx.Request) -> httpx.Response | None:
            tried.append(request.content)
            return bad_fails(request) if len(tried) == 1 else None

        api.answer = recover
        while await sender.step() is not None:
            pass
    run.journal.resign()
    assert run.journal.refused() == []
    assert sorted(api.accepted["maya"]) == texts


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_an_add_that_waits_for_the_server_is_not_set_aside(
    api: FakeApi, tmp_path: Path, status: int
) -> None:
    run = Simulation(api, tmp_path)
    run.journal.append(add("bad"))
    for number in range(50):
        run.journal.append(add(f"turn {number}", "other"))
    api.answer = lambda request: (
        httpx.Response(status) if b"bad" in request.content and run.now < HOUR_S else None
    )
    await run.until(2 * HOUR_S)
    assert api.accepted["maya"] == ["bad"]
    assert run.journal.refused() == []
