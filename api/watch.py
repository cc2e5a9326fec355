"""Following events to their end, for any number of callers with one query a beat."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from pipeline.ledger.events import Events, Progress

# A quarter of the shortest pipeline run: finer would only cost queries.
BEAT_S = 0.025


@dataclass(eq=False, slots=True)
class Follower:
    """Whoever wants to hear of one event's changes; `last` is what it heard last."""

    event_id: UUID
    changes: asyncio.Queue[Progress] = field(default_factory=asyncio.Queue)
    last: Progress | None = None

    def tell(self, progress: Progress) -> None:
        if progress != self.last:
            self.last = progress
            self.changes.put_nowait(progress)


class EventWatch:
    def __init__(self, events: Events) -> None:
        self._events = events
        self._followers: set[Follower] = set()
        self._beating: asyncio.Task[None] | None = None

    async def ended(self, event_id: UUID, *, timeout_s: float) -> bool:
        """True once the event has ended, False where it has not within the time."""
        with self.following(event_id) as changes:
            try:
                async with asyncio.timeout(timeout_s):
                    while not (await changes.get()).ended:
                        pass
            except TimeoutError:
                return False
        return True

    @contextmanager
    def following(self, event_id: UUID) -> Iterator[asyncio.Queue[Progress]]:
        """How the event stands, soon, and then each change of it."""
        follower = Follower(event_id)
        self._followers.add(follower)
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat())
        try:
            yield follower.changes
        finally:
            self._followers.discard(follower)

    async def close(self) -> None:
        if self._beating:
            self._beating.cancel()

    async def _beat(self) -> None:
        """Runs while somebody follows."""
        while self._followers:
            try:
                found = await self._events.progress(list({f.event_id for f in self._followers}))
                for follower in self._followers:
                    if follower.event_id in found:
                        follower.tell(found[follower.event_id])
            except (SQLAlchemyError, OSError):
                pass  # the ledger may be back at the next beat; the callers' time runs
            await asyncio.sleep(BEAT_S)
