"""The other tenant: polls /healthz, searches and adds, and prints each duration as a JSON line.

    python -m tests.bench.hostile.control PORT KEY

It is a process of its own, so that the hostile tenant's client does not delay it. Each request has
a connection of its own, so that all API processes are asked.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import uvloop

HEALTH_EVERY_S, SEARCH_EVERY_S, ADD_EVERY_S = 0.02, 0.05, 0.1
# Adds to one user, before the next user: the searches of a larger scope would be slower.
ADDS_EACH = 50


class Control:
    """Requests of the other tenant."""

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self._key = key
        self._turns, self._adds = count(), count()
        self._user = "control"

    async def run(self) -> None:
        """Send requests until the process is ended."""
        await self._add()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._repeat("healthz", self._healthz, HEALTH_EVERY_S))
            tasks.create_task(self._repeat("search", self._search, SEARCH_EVERY_S))
            tasks.create_task(self._repeat("add", self._add, ADD_EVERY_S))

    async def _repeat(self, kind: str, ask: Callable[[], Awaitable[bool]], every_s: float) -> None:
        while True:
            began = time.monotonic()
            try:
                ok = await ask()
            except (OSError, asyncio.IncompleteReadError, ValueError):
                ok = False
            line = {"kind": kind, "began": began, "s": time.monotonic() - began, "ok": ok}
            print(json.dumps(line), flush=True)
            await asyncio.sleep(every_s)

    async def _healthz(self) -> bool:
        status, _ = await self._send("GET", "/healthz")
        return status == 200

    async def _search(self) -> bool:
        query = f"Which trail does the user like, visit {next(self._turns)}?"
        body = {"query": query, "filters": {"user_id": self._user}}
        status, _ = await self._send("POST", "/v3/memories/search/", body)
        return status == 200

    async def _add(self) -> bool:
        """Add a message and wait for the end of its event."""
        text = f"I like trail {next(self._turns)}."
        self._user = f"control-{next(self._adds) // ADDS_EACH}"
        body = {"user_id": self._user, "messages": [{"role": "user", "content": text}]}
        status, answer = await self._send("POST", "/v3/memories/add/", body)
        if status != 200:
            return False
        path = f"/v1/event/{answer['event_id']}/?wait=60"
        status, event = await self._send("GET", path)
        return status == 200 and event["status"] == "SUCCEEDED"

    async def _send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
            f"Authorization: Token {self._key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(head.encode() + content)
            answer = await reader.read()
        finally:
            writer.close()
        start, _, rest = answer.partition(b"\r\n\r\n")
        status = int(start.split(b" ", 2)[1]) if start else 0
        return status, json.loads(rest) if status == 200 else None


if __name__ == "__main__":
    uvloop.run(Control(int(sys.argv[1]), sys.argv[2]).run())
