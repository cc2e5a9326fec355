"""A page part that updates itself, built once for all consoles of a project."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

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
