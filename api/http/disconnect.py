"""Requests of disconnected clients: a read is cancelled, and with it its PostgreSQL statement.

An add may continue for ADD_S seconds, because some clients close the connection right after
sending. Then it is cancelled: each retry of such a client would be stored as another add. All other
requests run to their end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.auth.tenant import reader

ADD_S = 5.0
BODY_HEADERS = {b"content-length", b"transfer-encoding"}


class EndWithClient:
    """Middleware that ends requests of disconnected clients. `adds`: endpoints that accept adds."""

    def __init__(
        self, app: ASGIApp, *, adds: Collection[Callable[..., Any]], add_s: float = ADD_S
    ) -> None:
        self._app = app
        self._adds = set(adds)
        self._add_s = add_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request until its end, or until its time without a client is over."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        client = _Client(receive)
        if not BODY_HEADERS & {name for name, _ in scope["headers"]}:
            await (
                client.read_ahead()
            )  # a route without a body never reads, so a disconnect would go unseen
        request = asyncio.create_task(_as_coroutine(self._app, scope, client.receive, send))
        try:
            await asyncio.wait({request, client.gone}, return_when=asyncio.FIRST_COMPLETED)
            if not request.done() and (given_s := self._time_left(scope)) is not None:
                await asyncio.wait({request}, timeout=given_s)
                request.cancel()
            with suppress(asyncio.CancelledError):
                await request
        finally:
            request.cancel()
            client.close()

    def _time_left(self, scope: Scope) -> float | None:
        """Seconds that a request may go on without its client; None for no limit."""
        if scope["method"] in ("GET", "HEAD") or _only_reads(scope.get("route")):
            return 0.0
        return self._add_s if scope.get("endpoint") in self._adds else None


def _only_reads(route: Any) -> bool:
    if not isinstance(route, APIRoute):
        return False
    return any(dependency.call is reader for dependency in route.dependant.dependencies)


class _Client:
    """The client's side of a request: its body, then its disconnect."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ahead: Message | None = None
        self._watch: asyncio.Task[None] | None = None
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def read_ahead(self) -> None:
        self._ahead = await self._next()

    async def receive(self) -> Message:
        if self._ahead is not None:
            message, self._ahead = self._ahead, None
            return message
        if self._watch is not None:
            await asyncio.shield(self.gone)
            return {"type": "http.disconnect"}
        return await self._next()

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._left()
        elif not message.get("more_body") and self._watch is None:
            self._watch = asyncio.create_task(self._until_gone())
        return message

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._left()

    def _left(self) -> None:
        if not self.gone.done():
            self.gone.set_result(None)

    def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()


async def _as_coroutine(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await app(scope, receive, send)
