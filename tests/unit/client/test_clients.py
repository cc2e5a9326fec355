"""Both clients over a mock transport: requests as the API expects them, answers as types."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
from memlane_client import (
    AsyncMemlane,
    EventFailed,
    Memlane,
    Missing,
    NotEnded,
    Progress,
    Receipt,
    Rejected,
    Retries,
    Unavailable,
    Unreachable,
)

EVENT = "5d9b2e5e-0f5c-4a76-9d6a-3a3f0d8c6b11"
LINE = {"id": "1", "event": "ADD", "memory": "User lives in Porto", "reason": "new", "message": 0}


def event(status: str, **fields: Any) -> dict[str, Any]:
    lines = [LINE] if status == "SUCCEEDED" else []
    return {"id": EVENT, "status": status, "results": lines, "from_a_newer_server": 1, **fields}


def clients(handler: Callable[[httpx.Request], httpx.Response]) -> tuple[Memlane, AsyncMemlane]:
    transport = httpx.MockTransport(handler)
    fast = Retries(first_s=0.0)
    return (
        Memlane("key", transport=transport, retries=fast),
        AsyncMemlane("key", async_transport=transport, retries=fast),
    )


async def test_an_add_leads_to_a_typed_receipt() -> None:
    requests: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        if request.method == "POST":
            return httpx.Response(200, json={"event_id": EVENT, "status": "PENDING"})
        return httpx.Response(200, json=event("SUCCEEDED"))

    sync, asynchronous = clients(handler)
    with sync:
        receipt = sync.add("I moved to Porto.", user_id="maya", run_id=None).receipt(5)
    async with asynchronous:
        assert await (await asynchronous.add("I moved to Porto.", user_id="maya")).receipt() == (
            receipt
        )
    assert receipt.memories == ["User lives in Porto"]
    assert receipt.results[0].event == "ADD"
    assert (receipt.model_extra or {})["from_a_newer_server"] == 1
    add, poll = requests[:2]
    assert json.loads(add.content) == {
        "messages": [{"role": "user", "content": "I moved to Porto."}],
        "user_id": "maya",
    }
    assert add.headers["Authorization"] == "Token key"
    assert poll.url.path == f"/v1/event/{EVENT}/"
    assert float(poll.url.params["wait"]) == pytest.approx(5, abs=1)
    keys = {request.headers["Idempotency-Key"] for request in requests if request.method == "POST"}
    assert len(keys) == 2


async def test_a_retry_of_an_add_has_the_same_key() -> None:
    keys = []

    def handler(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) == 1:
            raise httpx.ReadTimeout("the answer is lost")
        return httpx.Response(200, json={"event_id": EVENT})

    sync, asynchronous = clients(handler)
    with sync:
        assert sync.add("Hi", user_id="maya").event_id() == EVENT
    async with asynchronous:
        await asynchronous.add("Hi", user_id="maya")
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("messages", ["", []])
def test_an_add_without_messages_or_ids_is_refused_before_it_is_sent(messages: Any) -> None:
    with Memlane("key") as memlane:
        with pytest.raises(ValueError, match="at least one message"):
            memlane.add(messages, user_id="maya")
        with pytest.raises(ValueError, match="user_id, agent_id"):
            memlane.add("Hi", user_id="")


async def test_a_failed_event_raises_with_its_receipt() -> None:
    failed = event("FAILED", code="LLM_BAD_OUTPUT", error="not JSON")
    sync, asynchronous = clients(lambda _: httpx.Response(200, json=failed))
    with sync, pytest.raises(EventFailed, match="LLM_BAD_OUTPUT: not JSON") as caught:
        sync.receipt(EVENT)
    assert caught.value.receipt.code == "LLM_BAD_OUTPUT"
    async with asynchronous:
        with pytest.raises(EventFailed):
            await asynchronous.receipt(EVENT)


def test_a_receipt_that_is_not_there_in_time_is_a_timeout() -> None:
    sync, _ = clients(lambda _: httpx.Response(200, json=event("RUNNING")))
    with sync, pytest.raises(NotEnded, match="is RUNNING after 0 s") as caught:
        sync.receipt(EVENT, 0)
    assert isinstance(caught.value, TimeoutError)


async def test_ids_of_a_search_are_filters_and_a_conversation_is_messages() -> None:
    bodies: list[dict[str, Any]] = []
    hit = {"id": "1", "memory": "User lives in Porto", "score": 0.8, "type": "fact"}

    def handler(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(200, json={"results": [hit], "relations": []})

    turns = [{"role": "user", "content": "And there?"}]
    sync, asynchronous = clients(handler)
    with sync:
        answer = sync.search("Where?", user_id="maya", filters={"categories": "home"}, top_k=3)
    async with asynchronous:
        await asynchronous.search(turns, user_id="maya")
    assert answer.results[0].score == 0.8
    assert bodies == [
        {
            "query": "Where?",
            "top_k": 3,
            "filters": {"AND": [{"user_id": "maya"}, {"categories": "home"}]},
        },
        {"messages": turns, "filters": {"user_id": "maya"}},
    ]


@pytest.mark.parametrize("name", ["user_id", "agent_id", "app_id", "run_id"])
async def test_an_id_of_a_search_is_no_wildcard(name: str) -> None:
    """A user who takes the id `*` would read the memories of all users."""
    sync, asynchronous = clients(lambda _: httpx.Response(200, json={"results": []}))
    ids: Any = {"app_id": "shop", name: "*"}
    with sync, pytest.raises(Rejected, match=f"{name}.*filters"):
        sync.search("Where?", **ids)
    async with asynchronous:
        with pytest.raises(Rejected):
            await asynchronous.search("Where?", **ids)
        await asynchronous.search("Where?", filters={"user_id": "*"})


async def test_a_stream_yields_progress_then_the_receipt() -> None:
    def handler(_: httpx.Request) -> httpx.Response:
        stage = json.dumps({"status": "RUNNING", "stage": "extract", "waiting": None})
        end = json.dumps(event("SUCCEEDED"))
        text = f": hello\n\nevent: stage\ndata: {stage}\n\nevent: end\ndata: {end}\n\n"
        return httpx.Response(200, text=text)

    sync, asynchronous = clients(handler)
    with sync:
        first, last = sync.stream(EVENT)
    async with asynchronous:
        assert [part async for part in asynchronous.stream(EVENT)] == [first, last]
    assert isinstance(first, Progress)
    assert first.stage == "extract"
    assert isinstance(last, Receipt)
    assert last.memories == ["User lives in Porto"]


async def test_a_line_of_a_stream_ends_at_a_line_feed_only() -> None:
    text = "a\x0bb\x1ec\x85d\u2028e\u2029f"
    end = json.dumps(event("FAILED", error=text), ensure_ascii=False)
    content = f"event: end\r\ndata: {end}\r\n\r\n".encode()

    class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            return (content[place : place + 1] for place in range(len(content)))

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in self:
                yield piece

    sync, asynchronous = clients(lambda _: httpx.Response(200, stream=Pieces()))
    with sync:
        [receipt] = sync.stream(EVENT)
    async with asynchronous:
        assert [part async for part in asynchronous.stream(EVENT)] == [receipt]
    assert isinstance(receipt, Receipt)
    assert receipt.error == text


async def test_an_error_of_a_stream_is_raised() -> None:
    sync, asynchronous = clients(lambda _: httpx.Response(400, json={"error": "no id"}))
    with sync, pytest.raises(Rejected, match="no id"):
        list(sync.stream("x"))
    async with asynchronous:
        with pytest.raises(Rejected, match="no id"):
            [part async for part in asynchronous.stream("x")]


OF_ANOTHER_SERVER = {
    "a page": httpx.Response(200, text="<html>We are back soon.</html>"),
    "a list": httpx.Response(200, json=[1]),
    "another encoding": httpx.Response(
        200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip")
    ),
}


@pytest.mark.parametrize("response", OF_ANOTHER_SERVER.values(), ids=OF_ANOTHER_SERVER.keys())
async def test_a_response_of_another_server_is_an_error_of_the_client(
    response: httpx.Response,
) -> None:
    def handler(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=response.headers, stream=response.stream)

    sync, asynchronous = clients(handler)
    calls: list[Callable[[], object]] = [
        lambda: sync.add("Hi", user_id="maya"),
        lambda: sync.search("Where?", user_id="maya"),
        lambda: sync.list({"user_id": "maya"}),
        lambda: sync.event(EVENT),
        lambda: sync.get("1"),
        lambda: sync.update("1", text="x"),
        lambda: sync.delete("1"),
        lambda: list(sync.stream(EVENT)),
    ]
    with sync:
        for call in calls:
            with pytest.raises((Unavailable, Unreachable)):
                call()
    async with asynchronous:
        with pytest.raises((Unavailable, Unreachable)):
            await asynchronous.search("Where?", user_id="maya")
        with pytest.raises(Unreachable):
            [part async for part in asynchronous.stream(EVENT)]


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (httpx.Response(200, text='event: stage\ndata: {"status": "RUNNING"}\n\n'), Unreachable),
        (httpx.Response(302, headers={"Location": "https://sign.in"}), Unavailable),
    ],
    ids=["ends early", "leads elsewhere"],
)
async def test_a_stream_without_the_end_of_the_event_is_an_error(
    response: httpx.Response, kind: type[Exception]
) -> None:
    sync, asynchronous = clients(
        lambda _: httpx.Response(
            response.status_code, headers=response.headers, content=response.content
        )
    )
    with sync, pytest.raises(kind):
        list(sync.stream(EVENT))
    async with asynchronous:
        with pytest.raises(kind):
            [part async for part in asynchronous.stream(EVENT)]


async def test_an_id_cannot_change_the_path_of_a_request() -> None:
    """The delete of a memory would become the delete of all that match."""
    paths: list[str] = []
    odd, encoded = "?user_id=maya&source=/../ä", "%3Fuser_id%3Dmaya%26source%3D%2F..%2F%C3%A4"

    def handler(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.raw_path.decode())
        return httpx.Response(404, json={"error": "none"})

    sync, asynchronous = clients(handler)
    with sync:
        for ask in (sync.delete, sync.get, sync.update, sync.event, lambda i: [*sync.stream(i)]):
            with pytest.raises(Missing):
                ask(odd)
    async with asynchronous:
        with pytest.raises(Missing):
            await asynchronous.delete(odd)
    memory = f"/v1/memories/{encoded}/"
    event_paths = [f"/v1/event/{encoded}/?wait=0.0", f"/v1/event/{encoded}/stream/"]
    assert paths == [memory, memory, memory, *event_paths, memory]


async def test_memories_are_listed_read_changed_and_deleted() -> None:
    seen: list[tuple[str, str]] = []
    row = {"id": "1", "memory": "User lives in Porto", "metadata": {"n": 1}}

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append((request.method, request.url.raw_path.decode()))
        page = {"count": 1, "results": [row]}
        return httpx.Response(200, json=page if request.method == "POST" else row)

    sync, asynchronous = clients(handler)
    with sync:
        assert sync.list({"user_id": "maya"}, size=5).results == [sync.get("1")]
        sync.update("1", text="User lives in Bern")
        sync.delete("1")
    first, seen[:] = list(seen), []
    async with asynchronous:
        await asynchronous.list({"user_id": "maya"}, size=5)
        assert (await asynchronous.get("1")).metadata == {"n": 1}
        await asynchronous.update("1", text="User lives in Bern")
        await asynchronous.delete("1")
    assert (
        first
        == seen
        == [
            ("POST", "/v3/memories/?page=1&page_size=5"),
            ("GET", "/v1/memories/1/"),
            ("PUT", "/v1/memories/1/"),
            ("DELETE", "/v1/memories/1/"),
        ]
    )
