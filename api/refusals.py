"""Log lines of refused requests (4xx): route, status, code, error type and project; no user text.

Bounded, because a client can send any number of them: at most MOST_LINES a second and process; the
next line says how many were left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
import structlog
from fastapi import Request, Response

log = structlog.get_logger()

Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]
MOST_LINES = 10


class Refusals:
    """Writes the lines of one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = -1.0
        self._lines = self._left_out = 0

    def logged(self, handler: Handler) -> Handler:
        """The handler, with a line for each answer of 400 to 499."""

        async def handle(request: Request, error: Any) -> Response:
            answer = await handler(request, error)
            if 400 <= answer.status_code < 500:
                self._write(request, answer, error)
            return answer

        return handle

    def _write(self, request: Request, answer: Response, error: Exception) -> None:
        """Write the line, or count it as left out."""
        second = float(int(self._clock()))
        if second != self._since:
            self._since, self._lines = second, 0
        self._lines += 1
        if self._lines > MOST_LINES:
            self._left_out += 1
            return
        left_out, self._left_out = self._left_out, 0
        more = {"left_out": left_out} if left_out else {}
        log.info(
            "request_refused",
            method=request.method,
            route=getattr(request.scope.get("route"), "path", "unknown"),
            status=answer.status_code,
            code=orjson.loads(bytes(answer.body)).get("code"),
            error=type(error).__name__,
            project_id=request.scope.get("state", {}).get("project_id"),
            **more,
        )
