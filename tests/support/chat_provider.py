"""A stand-in for a provider of chat completions: it streams chunks, and may stop in the middle."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


@dataclass
class ChatProvider:
    """Streams `frames` to each request. After `pause_after` frames it waits for `go_on`."""

    frames: list[bytes]
    pause_after: int | None = None
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    paused: asyncio.Event = field(default_factory=asyncio.Event)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    @property
    def content(self) -> bytes:
        return b"".join(self.frames)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[ChatProvider]:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield self

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests until the client closes the connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                size = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
                self.bodies.append(json.loads(await reader.readexactly(size) or b"{}"))
                await self._stream(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        for number, frame in enumerate(self.frames):
            if number == self.pause_after:
                await writer.drain()
                self.paused.set()
                await self.go_on.wait()
            writer.write(b"%x\r\n%s\r\n" % (len(frame), frame))
            await writer.drain()
        writer.write(LAST)
        await writer.drain()


def chat_frames(words: int, *, identity: str) -> list[bytes]:
    """A stream of chat completions with this number of words."""
    frames = [
        b"data: %s\n\n"
        % json.dumps(
            {"id": identity, "choices": [{"index": 0, "delta": {"content": f"w{number} "}}]}
        ).encode()
        for number in range(words)
    ]
    return [*frames, b"data: [DONE]\n\n"]
