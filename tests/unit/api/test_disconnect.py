"""Requests whose client disconnects: some run to the end, the others are cancelled."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI
from starlette.types import Message

from api.auth.tenant import reader
from api.http.disconnect import EndWithClient

WITHIN_S = 10.0


class BlockedRequest:
    """A request to an app whose routes wait until `released` is set."""

    def __init__(self) -> None:
        self.begun, self.released, self.left = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.outcome: str | None = None
        self.sent: list[Message] = []
        app = FastAPI()
        app.dependency_overrides[reader] = lambda: None

        async def work() -> str:
            self.begun.set()
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                self.outcome = "ended"
                raise
            self.outcome = "done"
            return "done"

        @app.get("/read")
        async def read() -> str:
            return await work()

        @app.post("/search")
        async def search(body: dict[str, Any], _: Annotated[None, Depends(reader)]) -> str:
            return await work()

        @app.post("/add")
        async def add(body: dict[str, Any]) -> str:
            return await work()

        @app.post("/undo")
        async def undo() -> str:
            return await work()

        self.app = EndWithClient(app, adds=[add], add_s=0.0)

    async def make(self, method: str, path: str) -> None:
        body = b"{}" if method == "POST" else b""
        headers = [(b"content-type", b"application/json")]
        if body:
            headers.append((b"content-length", b"2"))
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": headers,
        }
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if messages:
                return messages.pop()
            await self.left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            self.sent.append(message)

        async with asyncio.timeout(WITHIN_S):
            await self.app(scope, receive, send)


@pytest.mark.parametrize(
    ("method", "path", "outcome"),
    [
        ("GET", "/read", "ended"),
        ("POST", "/search", "ended"),
        ("POST", "/add", "ended"),
        ("POST", "/undo", "done"),
    ],
)
async def test_a_request_whose_client_left(method: str, path: str, outcome: str) -> None:
    call = BlockedRequest()
    request = asyncio.create_task(call.make(method, path))
    await call.begun.wait()
    call.left.set()
    if outcome == "done":
        for _ in range(100):  # far more turns of the loop than a cancelled request needs to end
            await asyncio.sleep(0)
        call.released.set()
    await request
    assert call.outcome == outcome


@pytest.mark.parametrize(("method", "path"), [("GET", "/read"), ("POST", "/search")])
async def test_a_request_whose_client_stays_is_answered(method: str, path: str) -> None:
    call = BlockedRequest()
    call.released.set()
    await call.make(method, path)
    assert call.outcome == "done"
    assert call.sent[0]["status"] == 200
