"""A provider on loopback that gives one scripted HTTP response to every request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

GOOD = '{"facts": [{"messages": [1], "text": "User lives in Rome.", "categories": []}]}'
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def chat(content: object = GOOD, *, finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    """A chat completion with this content; `message`: its further fields."""
    return completion({"finish_reason": finish_reason}, {"content": content, **message})


def completion(choice: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """A chat completion with one choice."""
    first = {"index": 0, "message": {"role": "assistant", **message}, **choice}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m"} | {
        "choices": [first],
        "usage": USAGE,
    }


@dataclass
class ScriptedProvider:
    """Answers each request with `status` and `body`: JSON, or bytes as they are.

    `body` may be a function of the request's body that returns a status and a body.
    """

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    base_url: str = ""

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[ScriptedProvider]:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        async with server:
            yield self

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
        self.requests.append(json.loads(await reader.readexactly(size) or b"{}"))
        writer.write(self._response(self.requests[-1]))
        await writer.drain()
        writer.close()

    def _response(self, request: dict[str, Any]) -> bytes:
        status, body = self.status, self.body
        if callable(body):
            status, body = body(request)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        # LiteLLM does not close its clients, so the connection ends with the response.
        headers = {"content-type": "application/json", "connection": "close"}
        headers |= {"content-length": str(len(content))}
        lines = [f"{name}: {value}\r\n" for name, value in {**headers, **self.headers}.items()]
        return f"HTTP/1.1 {status} Status\r\n{''.join(lines)}\r\n".encode() + content
