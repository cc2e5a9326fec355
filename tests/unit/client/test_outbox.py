"""The outbox: files, order, waits, and the thread that sends."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from memlane_client import AsyncMemlane, NotEnded, OutboxClosed, OutboxFull, Rejected
from memlane_client.operations import Add
from memlane_client.outbox.journal import GRACE_S, End, Journal, Tail, encoded
from memlane_client.outbox.sender import Sender

from tests.support.outbox_api import HOUR_S, FakeApi, Simulation, add, refused


def fill(append: Callable[[], object]) -> None:
    for _ in range(100):
        append()


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def test_an_append_is_read_with_its_key_by_another_process(tmp_path: Path) -> None:
    first, second = add("one"), add("two")
    for item in (first, second):
        Journal(tmp_path / "o").append(item)
    assert [entry.add for entry in Journal(tmp_path / "o").new_entries()] == [first, second]
    assert (tmp_path / "o").stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "o").iterdir())


@pytest.mark.parametrize("size", range(1, 60, 7))
def test_a_torn_line_is_cut_off_and_nothing_else_is_lost(tmp_path: Path, size: int) -> None:
    journal = Journal(tmp_path)
    journal.append(add("one"))
    [path] = tmp_path.glob("*.adds")
    with path.open("ab") as file:
        file.write(encoded({"key": "torn", "at": 0, "body": {"messages": "x" * 80}})[:size])
    assert len(Journal(tmp_path).new_entries()) == 1
    Journal(tmp_path).append(add("two"))
    texts = [entry.add.body["messages"][0]["content"] for entry in journal.new_entries()]
    assert texts == ["one", "two"]


def test_a_damaged_line_is_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for text in ("one", "two", "three"):
        journal.append(add(text))
    [path] = tmp_path.glob("*.adds")
    path.write_bytes(path.read_bytes().replace(b"two", b"owt"))
    assert len(journal.new_entries()) == 2
    assert journal.damaged == 1


def test_an_outbox_at_its_bound_refuses_and_stores_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path, most_bytes=2_000)
    with pytest.raises(OutboxFull):
        fill(lambda: journal.append(add("x" * 100)))
    assert journal.size_bytes() <= 2_000
    count = len(journal.new_entries())
    with pytest.raises(OutboxFull):
        journal.append(add("x" * 100))
    assert (count > 2, journal.new_entries()) == (True, [])


@pytest.mark.parametrize("value", [float("nan"), object(), "\ud800"])
def test_a_value_that_is_no_json_is_refused_before_it_is_stored(
    tmp_path: Path, value: object
) -> None:
    with pytest.raises((TypeError, ValueError)):
        Journal(tmp_path).append(Add({"user_id": "maya", "metadata": {"x": value}}))
    assert Journal(tmp_path).new_entries() == []


def test_segments_are_deleted_after_their_adds_have_ended(tmp_path: Path) -> None:
    journal = Journal(tmp_path, segment_bytes=500)
    for number in range(20):
        journal.append(add(f"text {number}"))
    entries = journal.new_entries()
    segments = {entry.segment for entry in entries}
    assert len(segments) > 3
    for entry in entries[:-1]:
        journal.finish(entry, End(entry.add.key, event_id="e"))
    for path in tmp_path.glob("*.ends"):
        os.utime(path, (0, path.stat().st_mtime - 2 * GRACE_S))
    journal.drop_finished({entries[-1].segment})
    assert [entry.add for entry in Journal(tmp_path).new_entries()][-1] == entries[-1].add
    assert {entry.segment for entry in Journal(tmp_path).new_entries()} == {max(segments)}
    assert [entry.add for entry in journal.pending()] == [entries[-1].add]


def test_an_append_after_the_sender_deleted_the_segment_is_read(tmp_path: Path) -> None:
    writer, sender = Journal(tmp_path), Journal(tmp_path)
    writer.append(add("one"))
    [entry] = sender.new_entries()
    sender.finish(entry, End(entry.add.key, event_id="e"))
    for path in tmp_path.glob("*.ends"):
        os.utime(path, (0, path.stat().st_mtime - 2 * GRACE_S))
    sender.drop_finished(set())
    writer.append(add("two"))
    assert [entry.add.body["messages"][0]["content"] for entry in sender.new_entries()] == ["two"]
    assert {entry.segment for entry in Journal(tmp_path).new_entries()} == {2}


def test_processes_that_append_in_turns_share_segments_and_keep_the_order(tmp_path: Path) -> None:
    journals = [Journal(tmp_path, segment_bytes=700) for _ in range(3)]
    texts = [str(number) for number in range(30)]
    for number, text in enumerate(texts):
        journals[number % 3].append(add(text))
    entries = Journal(tmp_path).new_entries()
    assert [entry.add.body["messages"][0]["content"] for entry in entries] == texts
    assert len({entry.segment for entry in entries}) > 3


def test_a_folder_that_another_process_made_again_takes_appends(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "o")
    journal.append(add("one"))
    shutil.rmtree(tmp_path / "o")
    Journal(tmp_path / "o").append(add("two"))
    journal.append(add("three"))
    entries = Journal(tmp_path / "o").new_entries()
    texts = [entry.add.body["messages"][0]["content"] for entry in entries]
    assert texts == ["two", "one", "three"]


def test_a_reader_continues_where_it_stopped(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "x")
    assert tail.read() == []
    (tmp_path / "x").write_bytes(encoded({"a": 1}) + encoded({"b": 2})[:9])
    assert tail.read() == [{"a": 1}]
    (tmp_path / "x").write_bytes(encoded({"a": 1}) + encoded({"b": 2}))
    assert tail.read() == [{"b": 2}]


# ── sending, with a simulated clock ──────────────────────────────────────────────────────────────


async def test_a_server_that_is_down_for_an_hour_loses_nothing(
    api: FakeApi, tmp_path: Path
) -> None:
    run = Simulation(api, tmp_path)
    written: dict[str, list[str]] = defaultdict(list)
    api.answer = lambda request: refused(request) if run.now < HOUR_S else None

    def chat() -> None:
        if run.now < HOUR_S:
            user_id = f"user {len(written) % 7}" if len(written) < 7 else f"user {int(run.now) % 7}"
            text = f"turn {len(written[user_id])}"
            written[user_id].append(text)
            run.journal.append(add(text, user_id))

    await run.until(2 * HOUR_S, each=chat)
    assert run.now >= HOUR_S
    assert sum(map(len, written.values())) > 100
    assert api.accepted == written
    # The outage is probed at most every 15 to 30 s, for any number of adds.
    assert api.requests - len(run.ends) <= HOUR_S / 15 + 10
    assert run.journal.pending() == []


async def test_a_lost_answer_doubles_nothing(api: FakeApi, tmp_path: Path) -> None:
    run = Simulation(api, tmp_path)
    texts = [f"turn {number}" for number in range(20)]
    for text in texts:
        run.journal.append(add(text))
    lost = set(range(1, 40, 2))

    def answer(request: httpx.Request) -> httpx.Response | None:
        if api.requests in lost:
            api.answer = lambda _: None
            api(request)
            api.answer = answer
            raise httpx.ReadTimeout("the answer is lost")
        return None

    api.answer = answer
    await run.until(HOUR_S)
    assert api.accepted["maya"] == texts


async def test_a_sender_that_is_killed_between_answer_and_record_doubles_nothing(
    api: FakeApi, tmp_path: Path
) -> None:
    run = Simulation(api, tmp_path)
    run.journal.append(add("one"))
    run.journal.append(add("two"))
    await run.until(1.0)
    [path] = tmp_path.glob("*.ends")
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0][:-5])  # torn: none is read
    again = Simulation(api, tmp_path)
    await again.until(1.0)
    assert api.accepted["maya"] == ["one", "two"]
    assert {end.event_id for end in again.ends} == {"event-0", "event-1"}


async def test_a_refused_add_is_kept_with_its_reason_and_the_next_one_is_sent(
    api: FakeApi, tmp_path: Path
) -> None:
    run = Simulation(api, tmp_path)
    bad, good = add("bad"), add("good")
    run.journal.append(bad)
    run.journal.append(good)
    api.answer = lambda request: (
        httpx.Response(400, json={"error": "too long"}) if b"bad" in request.content else None
    )
    await run.until(HOUR_S)
    [row] = run.journal.refused()
    assert (row["key"], row["status"], row["reason"]) == (bad.key, 400, "400: too long")
    assert row["body"] == bad.body
    assert api.accepted["maya"] == ["good"]


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(401, json={"error": "unknown key"}),
        httpx.Response(404, text="not here"),
        httpx.Response(200, text="<html>a hotel's login page</html>"),
        httpx.Response(
            203, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip")
        ),
        httpx.Response(302, headers={"Location": "http://elsewhere"}),
        httpx.Response(500),
        httpx.Response(429, headers={"Retry-After": "7"}),
    ],
    ids=lambda answer: str(answer.status_code),
)
async def test_an_answer_that_is_no_verdict_on_the_add_keeps_it(
    api: FakeApi, tmp_path: Path, answer: httpx.Response
) -> None:
    run = Simulation(api, tmp_path)
    run.journal.append(add("one"))
    api.answer = lambda request: (
        httpx.Response(
            answer.status_code, headers=answer.headers, stream=answer.stream, request=request
        )
        if run.now < HOUR_S
        else None
    )
    await run.until(2 * HOUR_S)
    assert api.accepted["maya"] == ["one"]
    assert run.journal.refused() == []


async def test_scopes_are_sent_side_by_side_and_each_in_order(api: FakeApi, tmp_path: Path) -> None:
    run = Simulation(api, tmp_path)
    for number in range(10):
        for user_id in ("a", "b", "c"):
            run.journal.append(add(str(number), user_id))
    running: list[str] = []
    together = 0

    class Slow(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            nonlocal together
            user_id = json.loads(request.content)["user_id"]
            assert user_id not in running
            running.append(user_id)
            await asyncio.sleep(0)
            together = max(together, len(running))
            running.remove(user_id)
            return api(request)

    async with httpx.AsyncClient(transport=Slow(), base_url="http://memlane") as http:
        sender = Sender(run.journal, http, run.ends.append, clock=lambda: run.now)
        while await sender.step() is not None:
            pass
    run.journal.resign()
    assert together == 3
    assert api.accepted == {user_id: [str(n) for n in range(10)] for user_id in ("a", "b", "c")}


async def test_one_process_sends_and_the_next_takes_over(api: FakeApi, tmp_path: Path) -> None:
    first, second = Simulation(api, tmp_path), Simulation(api, tmp_path)
    assert first.journal.become_sender()
    second.journal.append(add("one"))
    await second.until(HOUR_S)
    assert api.requests == 0
    first.journal.resign()
    await second.until(HOUR_S)
    assert api.accepted["maya"] == ["one"]


# ── the client ───────────────────────────────────────────────────────────────────────────────────


def test_an_add_returns_while_the_server_is_down_and_is_sent_later(
    api: FakeApi, tmp_path: Path
) -> None:
    api.answer = refused
    with api.client(tmp_path) as memlane:
        ticket = memlane.add("one", user_id="maya")
        with pytest.raises(NotEnded):
            ticket.event_id(timeout=0)
        assert not ticket.accepted
        status = memlane.outbox_status()
        assert status is not None
        assert (status.pending, status.refused) == (1, 0)
        api.answer = lambda _: None
        assert ticket.event_id(timeout=10) == "event-0"
        assert ticket.accepted
        status = memlane.outbox_status()
        assert status is not None
        assert (status.pending, status.sending, status.blocked) == (0, True, None)


def test_what_a_closed_client_did_not_send_is_sent_by_the_next_one(
    api: FakeApi, tmp_path: Path
) -> None:
    api.answer = refused
    memlane = api.client(tmp_path)
    ticket = memlane.add("one", user_id="maya")
    memlane.close(flush_s=0)
    with pytest.raises(OutboxClosed):
        ticket.event_id()
    with pytest.raises(OutboxClosed):
        memlane.add("two", user_id="maya")
    api.answer = lambda _: None
    with api.client(tmp_path) as after:  # the start alone sends
        after.add("three", user_id="maya").event_id(timeout=10)
    assert api.accepted["maya"] == ["one", "three"]


def test_a_refused_add_raises_at_its_ticket(api: FakeApi, tmp_path: Path) -> None:
    api.answer = lambda _: httpx.Response(422, json={"error": "no"})
    with api.client(tmp_path) as memlane:
        ticket = memlane.add("one", user_id="maya")
        with pytest.raises(Rejected, match="422: no"):
            ticket.event_id(timeout=10)
        assert not ticket.accepted


def test_two_adds_with_one_key_are_one_event(api: FakeApi, tmp_path: Path) -> None:
    api.answer = refused
    with api.client(tmp_path) as memlane:
        tickets = [memlane.add("one", user_id="maya", idempotency_key="k") for _ in range(2)]
        api.answer = lambda _: None
        assert [ticket.event_id(timeout=10) for ticket in tickets] == ["event-0", "event-0"]
    assert api.accepted["maya"] == ["one"]


def test_a_process_that_does_not_send_gets_its_events(api: FakeApi, tmp_path: Path) -> None:
    with api.client(tmp_path) as sender, api.client(tmp_path) as other:
        assert sender.add("one", user_id="maya").event_id(timeout=10) == "event-0"
        ticket = other.add("two", user_id="maya")
        assert ticket.event_id(timeout=10) == "event-1"
        states = [client.outbox_status() for client in (sender, other)]
        assert [state.sending for state in states if state] == [True, False]


async def test_the_asynchronous_client_uses_the_same_outbox(api: FakeApi, tmp_path: Path) -> None:
    transport = httpx.MockTransport(api)
    async with AsyncMemlane("key", outbox=tmp_path, async_transport=transport) as memlane:
        tickets = [await memlane.add(f"turn {n}", user_id="maya") for n in range(30)]
        assert await memlane.flush(10)
        assert [await ticket.event_id(10) for ticket in tickets] == [
            f"event-{n}" for n in range(30)
        ]
        api.answer = refused
        late = await memlane.add("late", user_id="maya")
        with pytest.raises(NotEnded):
            await late.event_id(timeout=0)
        await memlane.close(flush_s=0)
    assert api.accepted["maya"] == [f"turn {number}" for number in range(30)]


def test_a_full_outbox_is_an_error_of_the_add(api: FakeApi, tmp_path: Path) -> None:
    api.answer = refused
    memlane = api.client(tmp_path, most_bytes=1_000)
    with pytest.raises(OutboxFull):
        fill(lambda: memlane.add("x" * 100, user_id="maya"))
    memlane.close(flush_s=0)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == "memlane-outbox"]
