"""Middleware around every request and response."""

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
from pipeline import telemetry, tracing

# nginx's status for a client that closed the connection.
CLIENT_LEFT = 499
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
SLASHES = re.compile(rb"/{2,}")
# Responses contain personal text: browsers must not sniff, frame, leak or cache them.
GUARDED = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


# Response headers that scripts of other origins may read.
EXPOSED = (
    "Retry-After",
    "X-Memlane-Ignored",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
)


# Starts of the paths whose routes end with a slash.
WITH_SLASH = (
    *(b"/v1/", b"/v2/", b"/v3/", b"/api/"),
    *(b"/memories", b"/search", b"/entities", b"/reset"),  # of the open-source dialect
)


class Around:
    """Base of the middleware without options: an ASGI app around another one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app


class OneSlash(Around):
    """Makes each route answer with and without its trailing slash, and ignores doubled slashes.

    Clients do not follow redirects, and a base URL with a trailing slash doubles the first slash of
    the path. Works on the raw path, because an id may contain an encoded slash.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw = SLASHES.sub(b"/", scope.get("raw_path") or scope["path"].encode())
            if raw.startswith(WITH_SLASH) and not raw.endswith(b"/"):
                raw += b"/"
            scope = {**scope, "raw_path": raw, "path": unquote(raw.decode("latin-1"))}
        await self._app(scope, receive, send)


class NoNul(Around):
    """Refuses a NUL character in the URL, which PostgreSQL cannot store."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if b"%00" in scope.get("query_string", b"") or "\0" in scope.get("path", ""):
            refusal = respond(400, "The URL holds a NUL character (%00); remove it.")
            return await refusal(scope, receive, send)
        return await self._app(scope, receive, send)


class BodyLimit:
    """Refuses a body over the limit with 413, without reading it if its length is declared.

    FastAPI's own `max_body_size` answers in plain text, which clients cannot show.
    """

    def __init__(self, app: ASGIApp, *, limit_bytes: int) -> None:
        self._app = app
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request; refuse its body if its declared or actual length is over the limit."""
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
    """Allow scripts of these origins to call the API (CORS), also on a private network.

    Credentials are not allowed: API keys are sent in a header, and there are no cookies.
    """
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        allow_headers=["*"],
        allow_private_network=True,
        expose_headers=EXPOSED,
    )


class Measured(Around):
    """Measures requests and counts responses, by route template.

    It must run inside OneSlash, which copies the scope: the router stores the route in that copy.
    """

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


class Traced(Around):
    """Records a span for each request, in the trace of its `traceparent` header if it has one.

    It has no path and no query: both may contain ids of users. It must run inside OneSlash, as
    Measured.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request in a span that is named after its method and route."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        method = scope["method"] if scope["method"] in METHODS else "other"
        header = dict(scope["headers"]).get(tracing.HEADER.encode(), b"").decode("latin-1")

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                span.set({"http.response.status_code": message["status"]})
                if message["status"] >= 500:
                    span.fail(str(message["status"]))
            await send(message)

        attributes = {"http.request.method": method}
        with tracing.span(method, attributes, kind="SERVER", parent=header or None) as span:
            try:
                await self._app(scope, receive, noting)
            finally:
                route = getattr(scope.get("route"), "path", "unknown")
                span.rename(f"{method} {route}")
                span.set({"http.route": route})


class AnswerHeaders(Around):
    """Adds headers to every response, errors too: security headers, and those that a dependency
    stored in `request.state.headers`. Headers set by the route are not changed.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The routes get a copy of the scope, which shares this dict.
        state = scope.setdefault("state", {}) if scope["type"] == "http" else {}

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in (GUARDED | state.get("headers", {})).items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, guarded)
