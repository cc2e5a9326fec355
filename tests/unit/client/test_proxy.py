"""The memory proxy: bodies, caches, headers and adds, over mock transports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from memlane_client import AsyncMemlane, Retries
from memlane_client.__main__ import main
from memlane_client.proxy.app import Proxy, create_app
from memlane_client.proxy.dialects import DIALECTS, documents, parsed, spoken_last
from memlane_client.proxy.recall import Recall
from memlane_client.proxy.settings import ProxySettings

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
CONTEXT = "<recalled>\n[1] 2026-05-07 User lives in Porto\n</recalled>"
HIT = {"id": "1", "memory": "User lives in Porto", "score": 0.9}
SECRET = "sk-provider-secret"
QUESTION = {"role": "user", "content": "Where do I live?"}
ANSWER = {
    "id": "chatcmpl-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "In Porto."}}],
}


def sse(*frames: dict[str, Any]) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(frame).encode() for frame in frames)


class Chunks(httpx.AsyncByteStream):
    """A response that arrives in parts of seven bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.content), 7):
            yield self.content[start : start + 7]


@pytest.mark.parametrize("command", ["proxy", "drain"])
def test_a_key_file_that_is_not_there_is_one_sentence(tmp_path: Path, command: str) -> None:
    with pytest.raises(SystemExit, match=r"no API key in .*/nope .*--key-file"):
        main([command, "--key-file", str(tmp_path / "nope"), "--outbox", str(tmp_path)])


@dataclass
class World:
    """A proxy with a stand-in provider and a stand-in Memlane."""

    folder: Path
    settings: ProxySettings = field(default_factory=ProxySettings)
    provider: Callable[[httpx.Request], httpx.Response] = lambda _: httpx.Response(200, json=ANSWER)
    searching: Callable[[httpx.Request], httpx.Response] = lambda _: httpx.Response(
        200, json={"results": [HIT], "context": CONTEXT}
    )
    sent: list[httpx.Request] = field(default_factory=list)
    searches: list[dict[str, Any]] = field(default_factory=list)
    adds: list[httpx.Request] = field(default_factory=list)

    def to_provider(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        answer = self.provider(request)
        return httpx.Response(
            answer.status_code, headers=answer.headers, stream=Chunks(answer.content)
        )

    def to_memlane(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v3/memories/search/":
            self.searches.append(json.loads(request.content))
            return self.searching(request)
        if request.url.path == "/v3/memories/add/":
            self.adds.append(request)
            return httpx.Response(200, json={"event_id": "e1", "status": "PENDING"})
        return httpx.Response(200, json={"id": "e1", "status": "SUCCEEDED", "results": []})

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[httpx.AsyncClient]:
        memlane = AsyncMemlane(
            "memlane-key",
            outbox=self.folder,
            retries=Retries(attempts=1),
            async_transport=httpx.MockTransport(self.to_memlane),
        )
        transport = httpx.MockTransport(self.to_provider)
        async with memlane, httpx.AsyncClient(transport=transport) as provider:
            proxy = Proxy(self.settings, memlane, provider, Recall(memlane, 500, 5.0))
            app = httpx.ASGITransport(create_app(proxy))
            async with httpx.AsyncClient(transport=app, base_url="http://proxy") as client:
                yield client
            await proxy.settled()
            assert await memlane.flush(10)

    def body(self, number: int = -1) -> dict[str, Any]:
        return dict(json.loads(self.sent[number].content))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "outbox")


async def test_memories_go_to_the_end_of_the_users_last_message(world: World) -> None:
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
    ]
    sent = {"model": "m", "messages": [*history, QUESTION], "user": "maya", "stream": False}
    async with world.serve() as client:
        answer = await client.post(CHAT, json=sent, headers={"Authorization": f"Bearer {SECRET}"})
    assert answer.json() == ANSWER
    assert answer.headers["X-Memlane-Search"] == "ok; results=1"
    body = world.body()
    last = body["messages"].pop()
    assert body == {**sent, "messages": history}
    assert last["content"].startswith("Where do I live?\n\n")
    assert last["content"].endswith(CONTEXT)
    assert world.searches == [
        {
            "messages": [*history[1:], QUESTION],
            "max_tokens": 500,
            "filters": {"user_id": "maya"},
        }
    ]
    assert world.sent[0].headers["Authorization"] == f"Bearer {SECRET}"
    assert str(world.sent[0].url) == "https://api.openai.com/v1/chat/completions"


async def test_one_add_has_the_question_as_the_user_wrote_it_and_the_reply(world: World) -> None:
    async with world.serve() as client:
        answer = await client.post(CHAT, json={"messages": [QUESTION], "user": "maya"})
        again = await client.post(CHAT, json={"messages": [QUESTION], "user": "maya"})
        receipts = [
            await client.get(response.headers["X-Memlane-Event"]) for response in (answer, again)
        ]
    assert [receipt.json()["status"] for receipt in receipts] == ["SUCCEEDED", "SUCCEEDED"]
    # The provider's response was the same one, so both adds have one key. The outbox sends the
    # second one only if the first was accepted before.
    assert len({request.headers["Idempotency-Key"] for request in world.adds}) == 1
    turn = [QUESTION, {"role": "assistant", "content": "In Porto."}]
    for request in world.adds:
        assert json.loads(request.content) == {"messages": turn, "user_id": "maya"}


async def test_equal_ids_of_different_responses_are_different_adds(world: World) -> None:
    async with world.serve() as client:
        for text in ("one", "two"):
            message = {"role": "user", "content": text}
            await client.post(CHAT, json={"messages": [message], "user": "maya"})
    assert len({request.headers["Idempotency-Key"] for request in world.adds}) == 2


async def test_no_key_of_a_provider_reaches_memlane_or_the_disk(world: World) -> None:
    async with world.serve() as client:
        headers = {"Authorization": f"Bearer {SECRET}", "x-api-key": SECRET, "X-Memlane-User": "x"}
        await client.post(CHAT, json={"messages": [QUESTION]}, headers=headers)
    files = [path.read_bytes() for path in world.folder.iterdir()]
    assert any(b"Where do I live?" in content for content in files)
    assert not any(SECRET.encode() in content for content in files)
    assert not any(SECRET in str(request.headers) for request in world.adds)
    assert not any(name.startswith("x-memlane") for name in world.sent[0].headers)


async def test_a_stream_is_unchanged_and_its_text_is_stored(world: World) -> None:
    frames = [
        {"id": "c1", "choices": [{"index": 0, "delta": {"content": f"{n} "}}]} for n in range(9)
    ]
    stream = b": comment\n\n" + sse(*frames) + b"data: [DONE]\n\n"
    kind = {"content-type": "text/event-stream", "x-request-id": "r", "set-cookie": "a=b"}
    world.provider = lambda _: httpx.Response(200, headers=kind, content=stream)
    async with world.serve() as client:
        answer = await client.post(
            CHAT, json={"messages": [QUESTION], "user": "maya", "stream": True}
        )
        await client.post(CHAT, json={"messages": [QUESTION], "user": "ravi", "stream": True})
    assert answer.content == stream
    assert {name: answer.headers[name] for name in kind} == kind
    assert json.loads(world.adds[0].content)["messages"][1]["content"] == "0 1 2 3 4 5 6 7 8 "


async def test_a_stream_whose_text_has_line_separators_is_stored_whole(world: World) -> None:
    texts = ["one\u2028two ", "three\x85four ", "five"]
    deltas = [{"id": "c1", "choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    lines = [f"data: {json.dumps(delta, ensure_ascii=False)}\r\n\r\n" for delta in deltas]
    world.provider = lambda _: httpx.Response(200, content="".join(lines).encode())
    async with world.serve() as client:
        await client.post(CHAT, json={"messages": [QUESTION], "user": "maya", "stream": True})
    assert json.loads(world.adds[0].content)["messages"][1]["content"] == "".join(texts)


async def test_a_turn_that_calls_tools_is_one_search_and_one_add(world: World) -> None:
    call = {"id": "t1", "function": {"name": "f", "arguments": "{}"}}
    asks = {"role": "assistant", "content": None, "tool_calls": [call]}
    answers = [{"id": "c1", "choices": [{"index": 0, "message": asks}]}, ANSWER]
    world.provider = lambda _: httpx.Response(200, json=answers[len(world.sent) - 1])
    tool = {"role": "tool", "tool_call_id": "t1", "content": "42"}
    async with world.serve() as client:
        await client.post(CHAT, json={"messages": [QUESTION], "user": "maya"})
        await client.post(CHAT, json={"messages": [QUESTION, asks, tool], "user": "maya"})
    first, second = world.body(0)["messages"], world.body(1)["messages"]
    assert second[: len(first)] == first  # the provider's cache holds
    assert second[1:] == [asks, tool]
    assert (len(world.searches), len(world.adds)) == (1, 1)


async def test_the_same_question_in_another_chat_is_another_search(world: World) -> None:
    """Memories may have changed, or been erased, since it was asked before."""
    contexts = iter(["<recalled>old</recalled>", "<recalled>new</recalled>"])
    world.searching = lambda _: httpx.Response(
        200, json={"results": [HIT], "context": next(contexts)}
    )
    asks = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f"}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}
    async with world.serve() as client:
        for messages in ([QUESTION], [QUESTION], [QUESTION, asks, result]):
            await client.post(CHAT, json={"messages": messages, "user": "maya"})
    texts = [world.body(number)["messages"][0]["content"] for number in range(3)]
    assert ["old" in text for text in texts] == [True, False, False]
    assert texts[1] == texts[2]


async def test_anthropics_messages_keep_their_blocks(world: World) -> None:
    cached = {"type": "text", "text": "Where?", "cache_control": {"type": "ephemeral"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "42"}
    frames = [
        {"type": "message_start", "message": {"id": "msg_1", "content": []}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "In "}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Porto."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    ]
    world.provider = lambda _: httpx.Response(200, content=sse(*frames))
    sent: dict[str, Any] = {
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": [cached]}, {"role": "user", "content": [result]}],
        "metadata": {"user_id": "maya"},
    }
    async with world.serve() as client:
        await client.post(MESSAGES, json=sent, headers={"x-api-key": SECRET})
    body = world.body()
    assert str(world.sent[0].url) == "https://api.anthropic.com/v1/messages"
    assert world.sent[0].headers["x-api-key"] == SECRET
    assert body["system"] == sent["system"]
    assert body["messages"][0]["content"][0] == cached
    assert body["messages"][0]["content"][1]["text"].endswith(CONTEXT)
    assert body["messages"][1] == sent["messages"][1]
    assert json.loads(world.adds[0].content)["messages"] == [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": "In Porto."},
    ]


async def test_memlane_down_forwards_all_the_same_and_says_so(world: World) -> None:
    def down(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    world.searching = down
    async with world.serve() as client:
        answer = await client.post(CHAT, json={"messages": [QUESTION], "user": "maya"})
        assert (await client.get("/healthz")).json()["status"] == "ok"
    assert answer.json() == ANSWER
    assert answer.headers["X-Memlane-Search"] == "unavailable; Unreachable"
    assert world.body()["messages"] == [QUESTION]
    assert len(world.adds) == 1


async def test_a_response_of_another_server_than_memlane_forwards_all_the_same(
    world: World,
) -> None:
    world.searching = lambda _: httpx.Response(200, text="<html>We are back soon.</html>")
    async with world.serve() as client:
        answer = await client.post(CHAT, json={"messages": [QUESTION], "user": "maya"})
    assert answer.json() == ANSWER
    assert answer.headers["X-Memlane-Search"] == "unavailable; Unavailable"
    assert len(world.adds) == 1


async def test_an_error_of_the_provider_is_unchanged_and_nothing_is_stored(world: World) -> None:
    error = b'{"error": {"message": "quota",  "type": "insufficient_quota"}}'
    headers = {"content-type": "application/json", "retry-after": "7", "x-ratelimit": "0"}
    world.provider = lambda _: httpx.Response(429, headers=headers, content=error)
    async with world.serve() as client:
        answer = await client.post(CHAT, json={"messages": [QUESTION], "user": "maya"})
    assert (answer.status_code, answer.content) == (429, error)
    assert {name: answer.headers[name] for name in headers} == headers
    assert "X-Memlane-Event" not in answer.headers
    assert world.adds == []


async def test_a_provider_that_does_not_respond_is_a_502(world: World) -> None:
    def down(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    world.provider = down
    async with world.serve() as client:
        answer = await client.post(CHAT, json={"messages": [QUESTION], "user": "maya"})
    assert answer.status_code == 502
    assert "X-Memlane-Event" not in answer.headers
    assert "provider" in answer.json()["error"]["message"]
    assert world.adds == []


@pytest.mark.parametrize(
    ("content", "report"),
    [
        (b"no json", None),
        (b"[" * 100_000, None),
        (b'{"messages": []}', None),
        (b'{"messages": [{"role": "user", "content": "Hi"}]}', "skipped; no user"),
        (
            b'{"user": "maya", "messages": [{"role": "system", "content": "Hi"}]}',
            "skipped; no message of a user",
        ),
    ],
    ids=["text", "nested", "empty", "no user", "no question"],
)
async def test_a_request_without_user_or_question_is_forwarded_as_it_is(
    content: bytes, report: str | None, world: World
) -> None:
    async with world.serve() as client:
        answer = await client.post(f"{CHAT}?a=1", content=content)
    assert world.sent[0].content == content
    assert world.sent[0].url.query == b"a=1"
    assert answer.headers.get("X-Memlane-Search") == report
    assert (world.searches, world.adds) == ([], [])


async def test_an_answer_to_an_image_is_not_one_to_an_earlier_question(world: World) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    messages = [
        QUESTION,
        {"role": "assistant", "content": "In Porto."},
        {"role": "user", "content": [image]},
    ]
    async with world.serve() as client:
        answer = await client.post(CHAT, json={"messages": messages, "user": "maya"})
    assert answer.headers["X-Memlane-Search"] == "skipped; no message of a user"
    assert world.body()["messages"] == messages
    assert (world.searches, world.adds) == ([], [])


async def test_a_client_that_leaves_before_the_response_ends_the_request_and_the_turn(
    world: World,
) -> None:
    working, ended = asyncio.Event(), asyncio.Event()

    async def provider(_: httpx.Request) -> httpx.Response:
        working.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError("the request is cancelled before it is answered")

    body = json.dumps({"messages": [QUESTION], "user": "maya"}).encode()
    received: list[dict[str, Any]] = [{"type": "http.request", "body": body}]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if received:
            return received.pop()
        await working.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": CHAT,
        "raw_path": CHAT.encode(),
        "query_string": b"",
        "headers": [(b"host", b"proxy")],
    }
    transport = httpx.MockTransport(world.to_memlane)
    async with (
        AsyncMemlane("key", outbox=world.folder, async_transport=transport) as memlane,
        httpx.AsyncClient(transport=httpx.MockTransport(provider)) as http,
    ):
        proxy = Proxy(world.settings, memlane, http, Recall(memlane, 500, 5.0))
        async with asyncio.timeout(10):
            await create_app(proxy)(scope, receive, send)
        await proxy.settled()
    assert ended.is_set()
    assert sent[0]["status"] == 499
    assert world.adds == []


async def test_other_routes_pass_through(world: World) -> None:
    async with world.serve() as client:
        await client.get("/v1/models")
        await client.get("/v1/models", headers={"anthropic-version": "2023-06-01"})
    assert [request.url.host for request in world.sent] == ["api.openai.com", "api.anthropic.com"]


async def test_half_an_emoji_stops_neither_the_chat_nor_the_memory(world: World) -> None:
    """Clients in JavaScript cut texts within a pair of surrogates; JSON can hold the half."""
    deltas = [{"choices": [{"delta": {"content": half}}]} for half in ("Hi \ud83d", "\ude00")]
    stream = "".join(f"data: {json.dumps(delta)}\n\n" for delta in deltas)
    world.provider = lambda _: httpx.Response(200, content=stream.encode())
    messages = [
        {"role": "assistant", "content": "cut \ud83d"},
        {"role": "user", "content": "Where? \ude00"},
    ]
    async with world.serve() as client:
        content = json.dumps({"messages": messages, "user": "maya"}).encode()
        answer = await client.post(CHAT, content=content)
    assert answer.status_code == 200
    assert [turn["content"] for turn in world.searches[0]["messages"]] == [
        "cut \ufffd",
        "Where? \ufffd",
    ]
    sent = json.loads(world.sent[0].content.decode())["messages"]
    assert sent[0] == messages[0]
    assert sent[1]["content"].startswith(messages[1]["content"])
    added = [turn["content"] for turn in json.loads(world.adds[0].content)["messages"]]
    assert added == ["Where? \ufffd", "Hi \U0001f600"]


async def test_a_nul_character_stops_no_memory(world: World) -> None:
    """Memlane refuses texts with one, because PostgreSQL cannot store it."""
    world.provider = lambda _: httpx.Response(
        200, json={"choices": [{"message": {"content": "Hi\0there"}}]}
    )
    messages = [{"role": "user", "content": "My\0name is Ana."}]
    async with world.serve() as client:
        await client.post(CHAT, json={"messages": messages, "user": "maya"})
    assert world.searches[0]["messages"][0]["content"] == "My\ufffdname is Ana."
    added = [turn["content"] for turn in json.loads(world.adds[0].content)["messages"]]
    assert added == ["My\ufffdname is Ana.", "Hi\ufffdthere"]


async def test_half_an_emoji_in_the_users_id_does_not_stop_the_chat(world: World) -> None:
    body = {"messages": [{"role": "user", "content": "Where?"}], "user": "ana \ud83d"}
    async with world.serve() as client:
        answer = await client.post(CHAT, content=json.dumps(body).encode())
    assert answer.status_code == 200
    assert world.searches[0]["filters"] == {"user_id": "ana \ufffd"}


async def test_the_user_of_a_request_is_no_wildcard(world: World) -> None:
    async with world.serve() as client:
        body = {"messages": [{"role": "user", "content": "What do you know?"}], "user": "*"}
        answer = await client.post(CHAT, json=body)
    assert answer.status_code == 200
    assert world.searches == []
    assert CONTEXT not in world.sent[0].content.decode()


async def test_an_encoded_path_reaches_the_provider_as_it_is(world: World) -> None:
    path = "/v1/models/meta-llama%2FLlama%203%3F"
    async with world.serve() as client:
        await client.get(f"{path}?a=%2F")
    assert world.sent[0].url.raw_path == f"{path}?a=%2F".encode()


async def test_the_header_names_the_user_before_the_body_does(world: World) -> None:
    world.settings = ProxySettings(user="default")
    async with world.serve() as client:
        body = {"messages": [QUESTION]}
        await client.post(CHAT, json=body)
        await client.post(CHAT, json=body | {"user": "maya"})
        await client.post(CHAT, json=body | {"user": "maya"}, headers={"X-Memlane-User": "ravi"})
    users = [search["filters"]["user_id"] for search in world.searches]
    assert users == ["default", "maya", "ravi"]


@pytest.mark.parametrize("coding", ["utf-8", "latin-1"])
async def test_a_user_in_the_header_may_have_any_letters(world: World, coding: str) -> None:
    async with world.serve() as client:
        headers = [(b"X-Memlane-User", "josé".encode(coding))]
        await client.post(CHAT, json={"messages": [QUESTION]}, headers=headers)
    assert world.searches[0]["filters"]["user_id"] == "josé"
    assert json.loads(world.adds[0].content)["user_id"] == "josé"


async def test_an_unknown_token_is_not_found(world: World) -> None:
    async with world.serve() as client:
        assert (await client.get("/memlane/events/x")).status_code == 404


@pytest.mark.parametrize(
    "messages",
    [[], [{"role": "user"}], [{"role": "user", "content": None}], [{"role": "user", "content": 7}],
     [{"role": "user", "content": [{"type": "image_url"}, 7]}], [{"content": "x"}]],
)  # fmt: skip
def test_odd_messages_have_no_question(messages: list[dict[str, Any]]) -> None:
    assert spoken_last(messages) is None


def test_odd_responses_have_no_reply() -> None:
    odd = b'data: 7\n\ndata: {"choices": [7, {"index": 1}], "id": 9}\n\ndata: {"delta": null'
    for dialect in DIALECTS.values():
        reply = dialect.reply(list(documents(odd)))
        assert (reply.id, reply.text, reply.calls_tools) == (None, "", False)
    assert parsed(b'{"messages": [7]}') is None
