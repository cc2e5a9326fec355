"""A client that does something between the parts of a long answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.types import ASGIApp, Message


async def read_slowly(
    app: ASGIApp,
    path: str,
    headers: Mapping[str, str],
    *,
    after_first: Callable[[], Awaitable[object]],
    method: str = "GET",
    body: bytes = b"",
) -> bytes:
    """The body of an answer; `after_first` is called when its first part has arrived."""
    parts: list[bytes] = []
    requests: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not requests:
            await asyncio.Event().wait()  # it stays connected
        return requests.pop()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] == 200
        elif message["body"]:
            parts.append(message["body"])
            if len(parts) == 1:
                await after_first()

    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "server": ("memlane", 80),
        "client": ("maya", 1),
    }
    await app(scope, receive, send)
    return b"".join(parts)
