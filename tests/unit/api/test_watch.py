"""Waiting for events: the poll that all waiting requests share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from typing import cast
from uuid import UUID, uuid4

from api.events.watch import EventWatch
from pipeline.events.store import Events, Progress

request: ContextVar[str | None] = ContextVar("request", default=None)


class Polled:
    """Events without progress; the request in whose context each poll runs."""

    def __init__(self) -> None:
        self.polls: asyncio.Queue[str | None] = asyncio.Queue()

    async def progress(self, event_ids: Sequence[UUID]) -> dict[UUID, Progress]:
        self.polls.put_nowait(request.get())
        return {}


async def test_a_poll_belongs_to_no_request() -> None:
    """It reads for all projects, so it must not wait for connections in the turn of one."""
    events = Polled()
    watch = EventWatch(cast("Events", events))
    request.set("first")
    with watch.following(uuid4()):
        assert await events.polls.get() is None
    await watch.close()
