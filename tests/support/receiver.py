"""A receiver of webhooks for tests: it fails on request, and records all deliveries."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

# Status for the nth try (from 1) of a message; None closes the connection without an answer.
Answering = Callable[[str, int], int | None]


@dataclass(frozen=True, slots=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes
    status: int | None

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass(slots=True)
class WebhookReceiver:
    answering: Answering = lambda _id, _try: 200
    seen: list[Received] = field(default_factory=list)
    port: int = 0
    _tries: Counter[str] = field(default_factory=Counter)
    _server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks"

    @property
    def arrived(self) -> list[Received]:
        return [delivery for delivery in self.seen if delivery.status == 200]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (h.partition(":") for h in head[1:])}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            message = headers.get("webhook-id", "")
            self._tries[message] += 1
            status = self.answering(message, self._tries[message])
            self.seen.append(Received(head[0].split()[1], headers, body, status))
            if status is not None:
                status_line = f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n"
                where = f"Location: http://127.0.0.1:{self.port}/elsewhere\r\n"
                writer.write(
                    (status_line + (where if 300 <= status < 400 else "") + "\r\n").encode()
                )
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client was killed in the middle: this delivery does not count
        finally:
            writer.close()
