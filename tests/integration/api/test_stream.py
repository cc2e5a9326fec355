"""Following an event: a live stream of its stages, and reads that wait for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from api.events.watch import EventWatch
from api.http.sse import HEARTBEAT, live
from api.http.streams import MOST_EVENT_STREAMS
from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import ModelUnavailable
from pipeline.domain.events import Status
from pipeline.events.store import Events, Progress
from tests.support.api_service import (
    ADD,
    LIST,
    LIVES,
    MAYA,
    SEARCH,
    Service,
    error_of,
    serving,
)
from tests.support.engine import Engine
from tests.support.stack import wait_until
from tests.support.troubled import Troubled


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as built:
        yield built


@pytest.fixture
async def watch(engine: Engine) -> AsyncIterator[EventWatch]:
    built = EventWatch(engine.ledger.events)
    yield built
    await built.close()


def frames(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Events of a stream with their names; comments are left out."""
    parsed = []
    for block in text.strip().split("\n\n"):
        if not block.startswith(":"):
            name, data = block.split("\n")
            parsed.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return parsed


@dataclass
class Stream:
    """Stream that a test reads frame by frame."""

    engine: Engine
    watch: EventWatch
    event_id: UUID
    heartbeat_s: float = 15.0
    allowed: bool = True
    chunks: AsyncIterator[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.chunks = live(
            self.engine.project.id,
            self.event_id,
            events=self.engine.ledger.events,
            watch=self.watch,
            allowed=self.is_allowed,
            heartbeat_s=self.heartbeat_s,
        )

    async def is_allowed(self) -> bool:
        return self.allowed

    async def next(self) -> tuple[str, dict[str, Any]]:
        """The next frame; comments before it are skipped."""
        while not (arrived := frames((await anext(self.chunks)).decode())):
            pass
        return arrived[0]


async def accepted(service: Service, **body: object) -> str:
    answer = await service.client.post(ADD, json=LIVES | body)
    return str(answer.json()["event_id"])


# ── the stream ───────────────────────────────────────────────────────────────────────────────────


async def test_each_change_is_sent_once_and_the_end_is_the_whole_event(
    engine: Engine, watch: EventWatch
) -> None:
    event_id = await engine.add("I live in Berlin.")
    stream = Stream(engine, watch, event_id)
    seen = [await stream.next()]
    while engine.hints.waiting:
        await engine.step()
        seen.append(await stream.next())
    statuses = [(name, frame["status"], frame["stage"]) for name, frame in seen]
    assert statuses == [
        ("stage", "PENDING", None),
        ("stage", "RUNNING", "retrieve"),
        ("stage", "RUNNING", "apply"),
        ("stage", "RUNNING", "relate"),
        ("stage", "SUCCEEDED", None),
    ]
    name, event = await stream.next()
    assert (name, event["id"], event["status"]) == ("end", str(event_id), "SUCCEEDED")
    assert [line["event"] for line in event["results"]] == ["ADD"]
    assert [chunk async for chunk in stream.chunks] == []


async def test_a_wait_is_sent_with_its_reason_and_its_end(
    engine: Engine, watch: EventWatch
) -> None:
    engine.with_model(Troubled(word="jazz", error=ModelUnavailable("503")))
    stream = Stream(engine, watch, await engine.add("I like jazz."))
    await stream.next()
    await engine.drain()
    _, waits = await stream.next()
    while waits["waiting"] is None:  # it may have seen the claim before the wait
        _, waits = await stream.next()
    assert (waits["status"], waits["waiting"]["code"]) == ("RUNNING", "LLM_UNAVAILABLE")
    assert waits["waiting"]["until"]
    engine.with_model(RulesModel())
    await engine.pass_time(2000)
    await engine.sweep()
    await engine.drain()
    while (frame := await stream.next())[0] != "end":
        pass
    assert frame[1]["status"] == "SUCCEEDED"


async def test_an_event_without_progress_is_polled_less_often(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.events.watch.IDLE_AFTER_S", -1.0)
    monkeypatch.setattr("api.events.watch.IDLE_POLL_S", 3600.0)
    events = Counting(engine.ledger.engine)
    watch = EventWatch(events)
    idle, moving = await engine.add("I like jazz."), await engine.add("I like tea.", user_id="jon")
    with watch.following(idle) as first:
        await first.get()
        with watch.following(moving) as second:
            assert (await second.get()).status is Status.PENDING
    assert events.polls == [[idle], [moving]]
    await watch.close()


async def test_silence_is_filled_with_comments(engine: Engine, watch: EventWatch) -> None:
    stream = Stream(engine, watch, await engine.add("I like jazz."), heartbeat_s=0.05)
    await stream.next()
    assert await anext(stream.chunks) == HEARTBEAT
    assert await anext(stream.chunks) == HEARTBEAT
    await engine.drain()
    while (chunk := await anext(stream.chunks)) == HEARTBEAT:
        pass
    assert chunk.startswith(b"event: stage")


@pytest.mark.parametrize("heartbeat_s", [0.01, 600.0])
async def test_a_stream_ends_once_its_key_is_not_valid(
    engine: Engine, watch: EventWatch, heartbeat_s: float
) -> None:
    """At the next change of the event, and without one at the next heartbeat."""
    stream = Stream(engine, watch, await engine.add("I like jazz."), heartbeat_s=heartbeat_s)
    await stream.next()
    stream.allowed = False
    if heartbeat_s > 1:
        await engine.drain()
    async with asyncio.timeout(30):
        assert [chunk async for chunk in stream.chunks if chunk != HEARTBEAT] == []


async def test_the_stream_of_a_revoked_key_tells_no_more(service: Service) -> None:
    event_id = await accepted(service)
    key = (await service.client.post("/v1/keys/", json={"name": "x", "scope": "read"})).json()
    headers = {"Authorization": f"Token {key['key']}"}
    path = f"/v1/event/{event_id}/stream/"
    stream = asyncio.create_task(service.client.get(path, headers=headers))

    async def followed() -> bool:
        return any(waiting.last for waiting in service.api.watch._subscriptions)

    await wait_until(followed, within_s=30, what="the first state")
    await service.client.delete(f"/v1/keys/{key['id']}/")
    await service.engine.drain()
    async with asyncio.timeout(30):
        answer = await stream
    assert [name for name, _ in frames(answer.text)] == ["stage"]


class Counting(Events):
    """Events that record the ids of each poll."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self.polls: list[list[UUID]] = []

    async def progress(self, ids: Sequence[UUID]) -> dict[UUID, Progress]:
        self.polls.append(list(ids))
        return await super().progress(ids)


async def test_all_streams_share_one_look_a_beat(engine: Engine) -> None:
    events = Counting(engine.ledger.engine)
    watch = EventWatch(events)
    ids = [await engine.add("I like jazz.", user_id=f"user-{n}") for n in range(5)]
    streams = [Stream(engine, watch, event_id) for event_id in ids for _ in range(4)]
    first = await asyncio.gather(*(stream.next() for stream in streams))
    assert {frame["status"] for _, frame in first} == {"PENDING"}
    assert max(map(len, events.polls)) == 5
    assert len(events.polls) < len(streams)
    await watch.close()


async def test_no_event_is_polled_after_its_last_reader_has_gone(engine: Engine) -> None:
    events = Counting(engine.ledger.engine)
    watch = EventWatch(events)
    stream = Stream(engine, watch, await engine.add("I like jazz."))
    await stream.next()
    await stream.chunks.aclose()  # type: ignore[attr-defined]
    polling = watch._polling
    assert polling is not None
    async with asyncio.timeout(30):
        await polling


async def test_the_route_streams_to_the_end(service: Service) -> None:
    event_id = await accepted(service)
    answer, _ = await asyncio.gather(
        service.client.get(f"/v1/event/{event_id}/stream/"), service.engine.drain()
    )
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert answer.headers["Cache-Control"] == "no-store"
    *stages, (name, event) = frames(answer.text)
    assert {kind for kind, _ in stages} == {"stage"}
    assert (name, event) == ("end", await service.event(event_id))


async def test_an_event_that_has_ended_is_sent_at_once(service: Service) -> None:
    event_id = await service.add("I like jazz.")
    answer = await service.client.get(f"/v1/event/{event_id}/stream/")
    assert [name for name, _ in frames(answer.text)] == ["stage", "end"]


async def test_a_cancelled_event_ends_its_stream(service: Service) -> None:
    event_id = await accepted(service)
    answer, _ = await asyncio.gather(
        service.client.get(f"/v1/event/{event_id}/stream/"),
        service.client.post(f"/v1/event/{event_id}/cancel/"),
    )
    name, event = frames(answer.text)[-1]
    assert (name, event["status"], event["code"]) == ("end", "FAILED", "CANCELLED")


async def test_a_client_that_goes_away_ends_its_stream(service: Service) -> None:
    event_id = await accepted(service)
    gone, started = asyncio.Event(), asyncio.Event()
    request: list[dict[str, Any]] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if request:
            return request.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body" and message["body"]:
            started.set()

    path = f"/v1/event/{event_id}/stream/"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"authorization", f"Token {service.key}".encode())],
        "server": ("memlane", 80),
        "client": ("maya", 1),
    }
    serving_it = asyncio.ensure_future(service.app(scope, receive, send))
    async with asyncio.timeout(30):
        await started.wait()
        gone.set()
        await serving_it
    assert service.api.watch._subscriptions == set()


@pytest.mark.parametrize(
    ("event_id", "status", "holds"),
    [("7", 400, "event_id should be a valid UUID"), (str(UUID(int=7)), 404, "Event not found")],
)
async def test_what_cannot_be_streamed_is_refused_as_json(
    service: Service, event_id: str, status: int, holds: str
) -> None:
    answer = await service.client.get(f"/v1/event/{event_id}/stream/")
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/json")
    assert holds in error_of(answer)


async def test_another_projects_event_is_not_streamed(service: Service) -> None:
    event_id = await accepted(service)
    _, key = await service.engine.ledger.projects.create("theirs")
    theirs = {"Authorization": f"Token {key}"}
    answer = await service.client.get(f"/v1/event/{event_id}/stream/", headers=theirs)
    assert answer.status_code == 404


# ── reads that wait for an event ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", [LIST, SEARCH])
async def test_a_read_after_an_event_sees_its_effects(service: Service, path: str) -> None:
    body = {"query": "Berlin", "filters": MAYA, "after_event": await accepted(service), "wait": 30}
    answer, _ = await asyncio.gather(service.client.post(path, json=body), service.engine.drain())
    shown = answer.json()
    assert (shown["after_event_status"], shown["after_event_ended"]) == ("SUCCEEDED", True)
    assert ["Berlin" in row["memory"] for row in shown["results"]] == [True]


@pytest.mark.parametrize("path", [LIST, SEARCH])
async def test_a_read_that_runs_out_of_time_answers_and_reports_it(
    service: Service, path: str
) -> None:
    event_id = await accepted(service)
    for wait in ({}, {"wait": 0.05}):
        body = {"query": "Berlin", "filters": MAYA, "after_event": event_id} | wait
        shown = (await service.client.post(path, json=body)).json()
        assert (shown["after_event_status"], shown["after_event_ended"]) == ("PENDING", False)
        assert shown["results"] == []


async def test_a_search_says_how_much_of_its_ids_is_still_to_come(service: Service) -> None:
    async def pending(**filters: object) -> int | None:
        body = {"query": "Berlin", "filters": filters}
        count: int | None = (await service.client.post(SEARCH, json=body)).json()["pending"]
        return count

    await accepted(service)
    await accepted(service, agent_id="a1")
    cancelled = await accepted(service)
    await accepted(service, user_id="jon")
    await service.client.post(f"/v1/event/{cancelled}/cancel/")
    assert await pending(user_id="maya") == 2
    assert await pending(user_id="maya", agent_id="a1") == 1
    assert await pending(user_id="nobody") == 0
    assert await pending(user_id={"in": ["maya", "jon"]}) is None
    await service.engine.drain()
    assert await pending(user_id="maya") == 0


async def test_the_event_a_read_comes_after_is_one_of_the_project(service: Service) -> None:
    event_id = await accepted(service)
    _, key = await service.engine.ledger.projects.create("theirs")
    theirs = {"Authorization": f"Token {key}"}
    for path in (LIST, SEARCH):
        body = {"query": "x", "filters": MAYA, "after_event": event_id}
        answer = await service.client.post(path, json=body, headers=theirs)
        assert (answer.status_code, "Event not found" in error_of(answer)) == (404, True)


@pytest.mark.parametrize("bad", [{"after_event": "7"}, {"wait": 61}, {"wait": -1}, {"wait": "x"}])
@pytest.mark.parametrize("path", [LIST, SEARCH])
async def test_a_bad_token_is_refused_by_name(
    service: Service, path: str, bad: dict[str, object]
) -> None:
    answer = await service.client.post(path, json={"query": "x", "filters": MAYA} | bad)
    assert answer.status_code == 400
    assert next(iter(bad)) in error_of(answer)


async def test_the_events_that_a_project_follows_are_limited(service: Service) -> None:
    event_id = await service.add("I live in Berlin.")
    await service.engine.drain()
    path = f"/v1/event/{event_id}/stream/"
    with ExitStack() as others:
        for _ in range(MOST_EVENT_STREAMS):
            others.enter_context(service.api.event_streams.place(service.engine.project.id))
        refused = await service.client.get(path)
        assert (refused.status_code, "close some streams" in error_of(refused)) == (429, True)
        assert int(refused.headers["retry-after"]) > 0
    assert (await service.client.get(path)).status_code == 200
