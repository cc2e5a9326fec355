"""The MCP endpoint /mcp: checks the key, starts the SDK at the first request, and calls it.

The SDK costs a process 0.4 CPU seconds and 24 MB, and httpx 7 MB: they are imported only if /mcp is
used.
"""

from __future__ import annotations

import asyncio
import importlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.strict_json import StrictRequest
from api.mcp.tools import ApiRequest

if TYPE_CHECKING:
    import httpx

PATHS = ("/mcp", "/mcp/")
KEY_HEADERS = ("authorization", "x-api-key")
CHECK_KEY = ApiRequest("GET", "/v1/ping/")
# Client address of the MCP request, for the rate limits by address.
CALLER: ContextVar[Any] = ContextVar("caller", default=None)


class McpEndpoint:
    """The ASGI app of the MCP endpoint."""

    def __init__(self, app: ASGIApp, version: str) -> None:
        self._version = version

        async def for_caller(scope: Any, receive: Any, send: Any) -> None:
            await app(scope | {"client": CALLER.get()}, receive, send)

        self._for_caller = for_caller
        self._inside: httpx.AsyncClient | None = None
        self._starting = asyncio.Lock()
        self._closing = asyncio.Event()
        self._manager: Any = None
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = await self.ask(CHECK_KEY, Request(scope))
        if refusal.is_error:
            answer = Response(refusal.content, refusal.status_code, dict(refusal.headers))
            await answer(scope, receive, send)
            return
        if scope["method"] == "POST":
            # The SDK takes the last value of a repeated key; a gateway may check the first.
            receive = _again(await StrictRequest(scope, receive).checked_body(), receive)
        manager = await self._started()
        await manager.handle_request(scope, receive, send)

    async def ask(self, request: ApiRequest, outside: Request) -> httpx.Response:
        """Send a request to the REST API with the key of the MCP request; return the response."""
        CALLER.set(outside.scope.get("client"))
        return await self._client().request(
            request.method,
            request.path,
            params=dict(request.query),
            json=request.body,
            headers={k: outside.headers[k] for k in KEY_HEADERS if k in outside.headers},
        )

    async def close(self) -> None:
        """Stop the SDK and close the client of the REST API."""
        self._closing.set()
        if self._running:
            await self._running
        if self._inside:
            await self._inside.aclose()

    def _client(self) -> httpx.AsyncClient:
        """Client of the REST API in this process."""
        if self._inside is None:
            httpx: Any = importlib.import_module("httpx")
            transport = httpx.ASGITransport(self._for_caller, raise_app_exceptions=False)
            self._inside = httpx.AsyncClient(transport=transport, base_url="http://inside")
        return self._inside

    async def _started(self) -> Any:
        async with self._starting:
            if self._manager is None:
                server = await asyncio.to_thread(importlib.import_module, "api.mcp.server")
                manager, ready = server.build(self.ask, self._version), asyncio.Event()
                self._running = asyncio.create_task(self._run(manager, ready))
                await ready.wait()
                self._manager = manager
        return self._manager

    async def _run(self, manager: Any, ready: asyncio.Event) -> None:
        """Run the SDK's manager in one task: only the task that started it can stop it."""
        async with manager.run():
            ready.set()
            await self._closing.wait()


def _again(body: bytes, receive: Receive) -> Receive:
    """The messages of a request whose body was read: the body as one, then those that follow."""
    read = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive_again() -> Message:
        return next(read, None) or await receive()

    return receive_again
