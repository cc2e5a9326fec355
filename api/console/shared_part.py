"""Page parts that update themselves, built once for all consoles of a project or an event."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from pipeline.domain.tenants import ProjectId

# Less than the interval at which a page asks: each of its updates differs from the one before.
KEPT_S = 4.0
# Number of projects from which parts that are too old are dropped.
MANY = 100


@dataclass(slots=True)
class _Part:
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)
    built_at: float = -math.inf
    html: bytes = b""


class SharedPart:
    """The part of each project, kept for a few seconds; one for each process.

    One caller builds it while the others wait for it. An error is not kept.
    """

    def __init__(self, kept_s: float = KEPT_S) -> None:
        self._kept_s = kept_s
        self._parts: dict[ProjectId, _Part] = {}

    async def html(self, project_id: ProjectId, build: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the part of a project. Errors: those of `build`."""
        if len(self._parts) >= MANY:
            self._drop_old()
        part = self._parts.setdefault(project_id, _Part())
        async with part.one_at_a_time:
            if self._is_old(part):
                part.html = await build()
                part.built_at = time.monotonic()
            return part.html

    def _is_old(self, part: _Part) -> bool:
        return time.monotonic() - part.built_at >= self._kept_s

    def _drop_old(self) -> None:
        self._parts = {
            project_id: part
            for project_id, part in self._parts.items()
            if part.one_at_a_time.locked() or not self._is_old(part)
        }


@dataclass(slots=True)
class FollowedEvent:
    """The newest frame of an event, for all consoles that follow it."""

    followers: int = 0
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)
    _change: Hashable = None
    _frame: bytes = b""

    async def frame(self, change: Hashable, build: Callable[[], Awaitable[bytes]]) -> bytes:
        """The frame after a change; the first follower builds it. Errors: those of `build`."""
        async with self._one_at_a_time:
            if self._change != change:
                self._frame = await build()
                self._change = change
            return self._frame


class SharedFrames:
    """The frames of the events that consoles follow; one for each process."""

    def __init__(self) -> None:
        self._events: dict[UUID, FollowedEvent] = {}

    @contextmanager
    def following(self, event_id: UUID) -> Iterator[FollowedEvent]:
        """The event with its newest frame, which is dropped with the last follower."""
        event = self._events.setdefault(event_id, FollowedEvent())
        event.followers += 1
        try:
            yield event
        finally:
            event.followers -= 1
            if not event.followers:
                del self._events[event_id]
