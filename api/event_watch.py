"""Following events to their end, for any number of callers with one query a beat."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from pipeline.events.store import Events, Progress
from pipeline.ledger.failures import LEDGER_FAILURES

# A quarter of the shortest pipeline run: finer would only cost queries.
BEAT_S = 0.025
# An event that has not moved for a second waits for something: it is looked at less often.
STILL_AFTER_S, STILL_BEAT_S = 1.0, 0.25


@dataclass(eq=False, slots=True)
class Follower:
    """A caller that follows one event; `last` is the last change it was given."""

    event_id: UUID
    # When its event last moved, as far as it is known, and when it is looked at next.
    moved_at: float
    due_at: float
    changes: asyncio.Queue[Progress] = field(default_factory=asyncio.Queue)
    last: Progress | None = None

    def tell(self, progress: Progress, now: float) -> None:
        if progress != self.last:
            self.last, self.moved_at = progress, now
            self.changes.put_nowait(progress)

    def looked(self, now: float) -> None:
        still = now - self.moved_at > STILL_AFTER_S
        self.due_at = now + (STILL_BEAT_S if still else BEAT_S)


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
        now = asyncio.get_running_loop().time()
        follower = Follower(event_id, moved_at=now, due_at=now)
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
            now = asyncio.get_running_loop().time()
            if due := [one for one in self._followers if one.due_at <= now]:
                await self._look(due, now)
            await asyncio.sleep(BEAT_S)

    async def _look(self, due: list[Follower], now: float) -> None:
        try:
            found = await self._events.progress(list({one.event_id for one in due}))
        except LEDGER_FAILURES:
            return  # the ledger may be back at the next beat; the callers' time runs
        for follower in due:
            if follower.event_id in found:
                follower.tell(found[follower.event_id], now)
            follower.looked(now)
