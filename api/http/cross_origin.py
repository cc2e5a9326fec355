"""CORS by project: scripts of the origins that a project allows may call the API with its tokens.

A preflight request has no token, so it is answered if any project allows the origin. The response
to the request itself can be read only if the project of the token does. A refused request (401) has
no data and no project: it can be read like a preflight response, so that a page learns that its
token has ended.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.middleware import EXPOSED, METHODS
from pipeline.ledger.failures import LedgerUnavailable

# Seconds that a change of a project's origins may take to be known.
CACHE_S = 5.0
MOST_CACHED = 1_000
LONGEST_ORIGIN = 300
ALLOWED_HEADERS = "Authorization, Content-Type, X-API-Key"


class KnownOrigins:
    """Origins that any project allows, cached for seconds."""

    def __init__(self, look_up: Callable[[str], Awaitable[bool]]) -> None:
        self._look_up = look_up
        self._known: dict[str, tuple[float, bool]] = {}

    async def allow(self, origin: str) -> bool:
        """Tell if any project allows the origin. False if the ledger does not answer."""
        if len(origin) > LONGEST_ORIGIN:
            return False
        until, allowed = self._known.get(origin, (0.0, False))
        if until > time.monotonic():
            return allowed
        try:
            allowed = await self._look_up(origin)
        except LedgerUnavailable:
            return False
        if len(self._known) >= MOST_CACHED:
            self._known.clear()
        self._known[origin] = time.monotonic() + CACHE_S, allowed
        return allowed


class ProjectOrigins:
    """Middleware that answers preflight requests and adds the CORS headers of a project.

    The project's origins are in `request.state.origins`, where the authentication stores them.
    """

    def __init__(self, app: ASGIApp, known: KnownOrigins) -> None:
        self._app = app
        self._known = known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a preflight request, or run the request and add its headers."""
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        origin = headers.get("origin", "").lower()
        if not origin or not scope["path"].startswith("/v"):
            return await self._app(scope, receive, send)
        asks = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        if asks and await self._known.allow(origin):
            return await _preflight(origin, headers)(scope, receive, send)
        state = scope.setdefault("state", {})

        async def readable(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._allow(origin, state, MutableHeaders(scope=message), message["status"])
            await send(message)

        return await self._app(scope, receive, readable)

    async def _allow(
        self, origin: str, state: dict[str, object], headers: MutableHeaders, status: int
    ) -> None:
        """Add the headers if the project, or for a 401 any project, allows the origin."""
        origins = state.get("origins")
        known = status == 401 and await self._known.allow(origin)
        headers.add_vary_header("Origin")
        if known or (isinstance(origins, tuple) and origin in origins):
            headers.setdefault("Access-Control-Allow-Origin", origin)
            headers.setdefault("Access-Control-Expose-Headers", ", ".join(EXPOSED))


def _preflight(origin: str, headers: Headers) -> Response:
    """The response to a preflight request of an allowed origin."""
    allowed = {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": ", ".join(sorted(METHODS - {"HEAD", "OPTIONS"})),
        "Access-Control-Allow-Headers": ALLOWED_HEADERS,
        "Access-Control-Max-Age": "600",
        "Vary": "Origin",
    }
    if "access-control-request-private-network" in headers:
        allowed["Access-Control-Allow-Private-Network"] = "true"
    return Response(status_code=204, headers=allowed)
