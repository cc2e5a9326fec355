"""A fake of the API for the outbox, and a sender whose clock is a number."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from memlane_client import Memlane
from memlane_client.calls import Retries
from memlane_client.operations import Add, new_add
from memlane_client.outbox.journal import End, Journal
from memlane_client.outbox.queue import DeliveryQueue
from memlane_client.outbox.sender import Sender

HOUR_S = 3_600.0


class FakeApi:
    """Accepts adds with idempotency keys, as the API does; `answer` may refuse or fail instead."""

    def __init__(self) -> None:
        self.events: dict[str, str] = {}
        self.accepted: dict[str, list[str]] = defaultdict(list)
        self.requests = 0
        self.answer: Callable[[httpx.Request], httpx.Response | None] = lambda _: None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        if (instead := self.answer(request)) is not None:
            return instead
        key, body = request.headers["Idempotency-Key"], json.loads(request.content)
        if key not in self.events:
            self.events[key] = f"event-{len(self.events)}"
            self.accepted[body["user_id"]].append(body["messages"][0]["content"])
        return httpx.Response(200, json={"event_id": self.events[key], "status": "PENDING"})

    def connect(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.MockTransport(self), base_url="http://memlane")

    def client(self, folder: Path, **options: Any) -> Memlane:
        transport = httpx.MockTransport(self)
        return Memlane("key", outbox=folder, async_transport=transport, **options)


def add(text: str, user_id: str = "maya") -> Add:
    return new_add(text, {"user_id": user_id})


def refused(_: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused")


def bad_fails(request: httpx.Request) -> httpx.Response | None:
    failed = httpx.Response(500, json={"error": "Internal error."})
    return failed if b"bad" in request.content else None


class Simulation:
    """A sender whose clock is a number."""

    def __init__(self, api: FakeApi, folder: Path, *, longest_s: float = 30.0) -> None:
        """`longest_s`: pause between the probes of an outage; long ones make a week short."""
        self.now = 0.0
        self.retries = Retries(first_s=0.25, longest_s=longest_s)
        self.ends: list[End] = []
        self.journal = Journal(folder)
        self.api = api

    async def until(self, end_s: float, *, each: Callable[[], None] = lambda: None) -> None:
        """Run the sender until the clock shows `end_s`, or until nothing is pending."""
        async with self.api.connect() as http:
            sender = Sender(
                self.journal,
                http,
                self.ends.append,
                clock=lambda: self.now,
                wall_clock=lambda: self.now,
                queue=DeliveryQueue(self.retries),
            )
            while self.now < end_s:
                each()
                pause_s = await sender.step()
                if pause_s is None:
                    break
                self.now += pause_s
        self.journal.resign()
