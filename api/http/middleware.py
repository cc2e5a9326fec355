"""Middleware: every request before it is routed, every response before it is sent."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Sequence
from urllib.parse import unquote

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import respond
from pipeline import telemetry

# What nginx logs for it.
CLIENT_LEFT = 499
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
SLASHES = re.compile(rb"/{2,}")
# Answers hold what people said: no browser may guess at them, frame, pass on or keep them.
GUARDED = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


# Headers of answers that scripts of other origins may read.
EXPOSED = (
    "Retry-After",
    "X-Memlane-Ignored",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
)


class OneSlash:
    """Each route answers with and without its last slash, and to a host given with one.

    Clients do not follow redirects, and a base URL with a trailing slash doubles the first one.
    Done on the raw path: an id may itself hold an encoded slash.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw = SLASHES.sub(b"/", scope.get("raw_path") or scope["path"].encode())
            if raw.startswith((b"/v1/", b"/v2/", b"/v3/", b"/api/")) and not raw.endswith(b"/"):
                raw += b"/"
            scope = {**scope, "raw_path": raw, "path": unquote(raw.decode("latin-1"))}
        await self._app(scope, receive, send)


class NoNul:
    """A NUL in the URL is refused by name: PostgreSQL's text holds none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if b"%00" in scope.get("query_string", b"") or "\0" in scope.get("path", ""):
            refusal = respond(400, "The URL holds a NUL character (%00); remove it.")
            return await refusal(scope, receive, send)
        return await self._app(scope, receive, send)


class BodyLimit:
    """A body over the limit is refused with 413, unread where it says its length.

    FastAPI's own `max_body_size` answers in plain text, which no client can show as a reason.
    """

    def __init__(self, app: ASGIApp, *, limit_bytes: int) -> None:
        self._app = app
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a body that is declared, or turns out, too large."""
        declared = dict(scope.get("headers", ())).get(b"content-length", b"0")
        seen_bytes = 0

        async def counting() -> Message:
            nonlocal seen_bytes
            self._check(int(declared))
            message = await receive()
            seen_bytes += len(message.get("body", b""))
            self._check(seen_bytes)
            return message

        await self._app(scope, counting if scope["type"] == "http" else receive, send)

    def _check(self, size_bytes: int) -> None:
        if size_bytes > self._limit_bytes:
            raise HTTPException(
                413,
                f"The body is larger than {self._limit_bytes} bytes. Split the messages over "
                "several adds, or raise MEMLANE_MAX_BODY_BYTES.",
            )


def cross_origin(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Let scripts of these origins call the API (CORS), on a private network too.

    Without credentials: a key goes into a header, and no cookie is ever set.
    """
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        allow_headers=["*"],
        allow_private_network=True,
        expose_headers=EXPOSED,
    )


class Measured:
    """Times requests and counts answers by route template: an id in a path is no label.

    Nearest to the routes of all, for those further out do not see which one was taken.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request and observe its duration."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begun, answered = time.perf_counter(), False

        def count(status: int) -> None:
            method = scope["method"] if scope["method"] in METHODS else "other"
            route = getattr(scope.get("route"), "path", "unknown")
            telemetry.http_seconds.labels(method, route).observe(time.perf_counter() - begun)
            telemetry.http_answers.labels(method, route, str(status)).inc()

        async def counting(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                count(message["status"])
            await send(message)

        try:
            return await self._app(scope, receive, counting)
        finally:
            if not answered:
                left = isinstance(sys.exc_info()[1], asyncio.CancelledError)
                count(CLIENT_LEFT if left else 500)


class AnswerHeaders:
    """The headers of every answer, errors too: those that guard it, and those a dependency left in
    `request.state.headers`. What the route itself has set stays.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The routes see a copy of the scope, and in it this very dict.
        state = scope.setdefault("state", {}) if scope["type"] == "http" else {}

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in (GUARDED | state.get("headers", {})).items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, guarded)
