"""ASGI middleware that runs before routing: slashes in the path, size of the body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from api.http.middleware import BodyLimit, OneSlash

LIMIT = 10


@dataclass
class Heard:
    """ASGI app that records the scopes it gets and reads the whole body."""

    scopes: list[Scope] = field(default_factory=list)
    body: bytes = b""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        while True:
            message = await receive()
            self.body += message.get("body", b"")
            if not message.get("more_body"):
                return


async def nothing_to_send(message: Message) -> None:
    raise AssertionError(f"unexpected message: {message}")


async def no_body() -> Message:
    return {"type": "http.request"}


async def path_of(raw: bytes, **scope: Any) -> tuple[bytes, str]:
    """The raw and the decoded path that the app gets."""
    heard = Heard()
    request = {"type": "http", "raw_path": raw, "path": "as the server decoded it", **scope}
    await OneSlash(heard)(request, no_body, nothing_to_send)
    return heard.scopes[0]["raw_path"], heard.scopes[0]["path"]


@pytest.mark.parametrize(
    ("sent", "given"),
    [
        (b"//v1/ping/", b"/v1/ping/"),
        (b"///v1//ping///", b"/v1/ping/"),
        (b"/v1/ping/", b"/v1/ping/"),
        (b"/v1/ping", b"/v1/ping/"),
        (b"//v3//memories//add", b"/v3/memories/add/"),
        (b"/v2/entities/user/maya", b"/v2/entities/user/maya/"),
        (b"/api/v1/auth", b"/api/v1/auth/"),
    ],
)
async def test_double_slashes_are_one_and_a_missing_last_one_is_there(
    sent: bytes, given: bytes
) -> None:
    assert await path_of(sent) == (given, given.decode())


@pytest.mark.parametrize("path", [b"/", b"/healthz", b"/metrics", b"/docs", b"/v10/x"])
async def test_pages_of_the_server_itself_keep_their_names(path: bytes) -> None:
    assert await path_of(path) == (path, path.decode())


@pytest.mark.parametrize(
    ("sent", "raw", "path"),
    [
        (b"/v1/x/a%2Fb/", b"/v1/x/a%2Fb/", "/v1/x/a/b/"),
        (b"/v1/x/a%2F%2Fb", b"/v1/x/a%2F%2Fb/", "/v1/x/a//b/"),
        (b"/v1/x/%2F/", b"/v1/x/%2F/", "/v1/x///"),
        (b"/v1/x/a%2F", b"/v1/x/a%2F/", "/v1/x/a//"),
        (b"/v1/x/a%2Fb%20c%40d/", b"/v1/x/a%2Fb%20c%40d/", "/v1/x/a/b c@d/"),
        (b"/v1/x/K%C3%B6ln/", b"/v1/x/K%C3%B6ln/", "/v1/x/Köln/"),
    ],
)
async def test_a_slash_inside_an_id_stays(sent: bytes, raw: bytes, path: str) -> None:
    assert await path_of(sent) == (raw, path)


async def test_a_server_that_gives_no_raw_path_is_served_too() -> None:
    assert await path_of(b"", path="//v1//ping") == (b"/v1/ping/", "/v1/ping/")


async def test_the_callers_scope_is_left_as_it_was_and_the_rest_goes_through() -> None:
    heard = Heard()
    scope = {"type": "http", "raw_path": b"//v1/x", "path": "//v1/x", "query_string": b"a=//b"}
    before = dict(scope)
    await OneSlash(heard)(scope, no_body, nothing_to_send)
    assert scope == before
    assert heard.scopes[0]["query_string"] == b"a=//b"


async def test_a_life_span_has_no_path() -> None:
    heard = Heard()
    await OneSlash(heard)({"type": "lifespan"}, no_body, nothing_to_send)
    assert heard.scopes == [{"type": "lifespan"}]


# ── the body ─────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Body:
    """Body of a client in chunks; counts the chunks read."""

    chunks: Sequence[bytes]
    read: int = 0

    async def __call__(self) -> Message:
        self.read += 1
        more = self.read < len(self.chunks)
        return {"type": "http.request", "body": self.chunks[self.read - 1], "more_body": more}


async def post(*chunks: bytes, declared: int | None = None) -> tuple[Heard, Body]:
    heard, body = Heard(), Body(chunks)
    length = [] if declared is None else [(b"content-length", str(declared).encode())]
    scope = {"type": "http", "headers": [(b"host", b"x"), *length]}
    await BodyLimit(heard, limit_bytes=LIMIT)(scope, body, nothing_to_send)
    return heard, body


async def test_a_body_up_to_the_limit_is_read_whole() -> None:
    heard, _ = await post(b"x" * LIMIT, declared=LIMIT)
    assert heard.body == b"x" * LIMIT


async def test_a_body_that_says_it_is_too_long_is_refused_unread() -> None:
    body = Body([b"x" * (LIMIT + 1)])
    scope = {"type": "http", "headers": [(b"content-length", str(LIMIT + 1).encode())]}
    with pytest.raises(HTTPException) as caught:
        await BodyLimit(Heard(), limit_bytes=LIMIT)(scope, body, nothing_to_send)
    assert caught.value.status_code == 413
    assert body.read == 0


async def test_a_body_in_chunks_is_counted_and_cut_off_at_the_limit() -> None:
    body = Body([b"x" * 4] * 5)
    with pytest.raises(HTTPException) as caught:
        await BodyLimit(Heard(), limit_bytes=LIMIT)(
            {"type": "http", "headers": []}, body, nothing_to_send
        )
    assert caught.value.status_code == 413
    assert body.read == 3  # the last two chunks are never read


async def test_a_body_that_lies_about_its_length_is_counted_all_the_same() -> None:
    with pytest.raises(HTTPException, match="larger than 10 bytes"):
        await post(b"x" * 4, b"x" * 4, b"x" * 4, declared=4)


async def test_chunks_up_to_the_limit_are_all_read() -> None:
    heard, body = await post(b"x" * 4, b"x" * 4, b"x" * 2)
    assert (heard.body, body.read) == (b"x" * LIMIT, 3)


async def test_each_request_is_counted_for_itself() -> None:
    limited = BodyLimit(Heard(), limit_bytes=LIMIT)
    for _ in range(3):
        await limited({"type": "http", "headers": []}, Body([b"x" * LIMIT]), nothing_to_send)


async def test_the_refusal_reaches_the_client_and_says_what_to_change() -> None:
    async def echo(request: Request) -> Response:
        return PlainTextResponse(await request.body())

    app = Starlette(routes=[Route("/v1/x/", echo, methods=["POST"])])
    app.add_middleware(BodyLimit, limit_bytes=LIMIT)
    app.add_middleware(OneSlash)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://memlane") as client:
        assert (await client.post("http://memlane//v1/x", content=b"x" * LIMIT)).text == "x" * LIMIT
        answer = await client.post("/v1/x/", content=b"x" * (LIMIT + 1))
    assert answer.status_code == 413
    assert "MEMLANE_MAX_BODY_BYTES" in answer.text
