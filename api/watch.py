"""Waiting for events to end, for any number of callers with one query a beat."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from pipeline.ledger.events import Events

# A quarter of the shortest pipeline run: finer would only cost queries.
BEAT_S = 0.025


class EventWatch:
    def __init__(self, events: Events) -> None:
        self._events = events
        self._waiting: dict[UUID, set[asyncio.Event]] = defaultdict(set)
        self._beating: asyncio.Task[None] | None = None

    async def ended(self, event_id: UUID, *, timeout_s: float) -> bool:
        """True once the event has ended, False where it has not within the time."""
        bell = asyncio.Event()
        self._waiting[event_id].add(bell)
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat())
        try:
            async with asyncio.timeout(timeout_s):
                await bell.wait()
        except TimeoutError:
            return False
        finally:
            self._waiting[event_id].discard(bell)
            if not self._waiting[event_id]:
                del self._waiting[event_id]
        return True

    async def close(self) -> None:
        if self._beating:
            self._beating.cancel()

    async def _beat(self) -> None:
        """Runs while somebody waits."""
        while self._waiting:
            try:
                for event_id in await self._events.finished(list(self._waiting)):
                    for bell in self._waiting.get(event_id, ()):
                        bell.set()
            except (SQLAlchemyError, OSError):
                pass  # the ledger may be back at the next beat; the callers' time runs
            await asyncio.sleep(BEAT_S)
