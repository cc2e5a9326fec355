"""Paced starts: of requests that arrive together, a few begin in each iteration of the event loop.

The first step of a request (headers, key, body) takes 1 to 3 ms of the loop. Those of 200 requests
that arrive at once would stand in one piece before all other work; paced, the loop runs what else
is ready between them. A request on an idle loop begins at once.
"""

from __future__ import annotations

import asyncio
from collections import deque

from starlette.types import ASGIApp, Receive, Scope, Send

# Paths of requests that never wait: they read nothing.
PROBES = frozenset({"/livez", "/livez/", "/healthz", "/healthz/"})
# Requests that begin in one iteration.
AT_ONCE = 4


class PacedStarts:
    """Middleware that lets AT_ONCE requests begin in an iteration of the event loop."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._waiting: deque[asyncio.Future[None]] = deque()
        # Requests that have begun in this iteration.
        self._begun = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request when it is its turn, in the order of arrival."""
        if scope["type"] == "http" and scope["path"] not in PROBES:
            await self._turn()
        await self._app(scope, receive, send)

    async def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._begun:
            loop.call_soon(self._next_iteration)
        if self._begun < AT_ONCE:
            self._begun += 1
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next_iteration(self) -> None:
        """Let the next requests begin that still wait."""
        self._begun = 0
        while self._waiting and self._begun < AT_ONCE:
            turn = self._waiting.popleft()
            if not turn.done():  # else its client left
                turn.set_result(None)
                self._begun += 1
        if self._begun:
            asyncio.get_running_loop().call_soon(self._next_iteration)
