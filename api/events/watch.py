"""Waiting for events: notifications for verbatim adds, polling for everything else.

The end of a verbatim add is notified. Stages, waits and all other ends are polled, with one query
for all waiting requests; polling also finds an end whose notification was lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field
from uuid import UUID

from pipeline.domain.events import Status
from pipeline.events.store import Events, Progress
from pipeline.ledger.failures import LedgerUnavailable

# A quarter of the shortest pipeline run. A shorter interval only adds queries.
POLL_S = 0.025
# An event without progress for a second is polled less often.
IDLE_AFTER_S, IDLE_POLL_S = 1.0, 0.25
# Delay of the first poll for an event whose end is notified, in case the notification is lost.
NOTIFIED_POLL_S = 0.25


@dataclass(eq=False, slots=True)
class Subscription:
    """One request's wait for one event. Times are those of the event loop's clock, in seconds."""

    event_id: UUID
    changed_at: float
    poll_at: float
    interval_s: float = POLL_S
    changes: asyncio.Queue[Progress] = field(default_factory=asyncio.Queue)
    last: Progress | None = None

    def deliver(self, progress: Progress, now: float) -> None:
        """Queue the progress for the caller if it differs from the last one."""
        if progress != self.last:
            self.last, self.changed_at = progress, now
            self.changes.put_nowait(progress)

    def schedule(self, now: float) -> None:
        """Set the time of the next poll."""
        idle = now - self.changed_at > IDLE_AFTER_S
        self.poll_at = now + (max(IDLE_POLL_S, self.interval_s) if idle else self.interval_s)


class EventWatch:
    """Delivers the progress of events to the requests that wait for them; one for each process.

    `listening`: True while notifications arrive.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._subscriptions: set[Subscription] = set()
        self._polling: asyncio.Task[None] | None = None
        self.listening = False

    async def ended(self, event_id: UUID, *, timeout_s: float, notified: bool = False) -> bool:
        """Wait for the end of an event. False if it does not end within `timeout_s`.

        `notified`: the event was just accepted and its end sends a notification.
        """
        delay_s = NOTIFIED_POLL_S if notified and self.listening else 0.0
        with self.following(event_id, delay_s) as changes:
            try:
                async with asyncio.timeout(timeout_s):
                    while not (await changes.get()).ended:
                        pass
            except TimeoutError:
                return False
        return True

    def notify(self, event_id: UUID, status: Status) -> None:
        """Deliver the final status of an event, if a request waits for it."""
        now = asyncio.get_running_loop().time()
        for subscription in self._subscriptions:
            if subscription.event_id == event_id:
                subscription.deliver(Progress(status), now)

    async def close(self) -> None:
        """Stop polling."""
        if self._polling:
            self._polling.cancel()

    @contextmanager
    def following(self, event_id: UUID, delay_s: float = 0.0) -> Iterator[asyncio.Queue[Progress]]:
        """A queue of the event's progress: its current state, then each change.

        `delay_s`: delay of the first poll, and minimum time between polls.
        """
        now = asyncio.get_running_loop().time()
        interval_s = max(POLL_S, delay_s)
        subscription = Subscription(event_id, now, poll_at=now + delay_s, interval_s=interval_s)
        self._subscriptions.add(subscription)
        if self._polling is None or self._polling.done():
            # For all requests: in the context of none.
            self._polling = asyncio.create_task(self._poll_all(), context=Context())
        try:
            yield subscription.changes
        finally:
            self._subscriptions.discard(subscription)

    async def _poll_all(self) -> None:
        """Poll until the last subscription ends."""
        while self._subscriptions:
            now = asyncio.get_running_loop().time()
            if due := [waiting for waiting in self._subscriptions if waiting.poll_at <= now]:
                await self._poll(due, now)
            await asyncio.sleep(POLL_S)

    async def _poll(self, due: list[Subscription], now: float) -> None:
        try:
            rows = await self._events.progress(list({waiting.event_id for waiting in due}))
        except LedgerUnavailable:
            return  # the next poll tries again, within the callers' timeouts
        for subscription in due:
            if subscription.event_id in rows:
                subscription.deliver(rows[subscription.event_id], now)
            subscription.schedule(now)
