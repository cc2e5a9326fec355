"""Sends the adds of the outbox, in order within each scope."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from memlane_client.errors import AccessDenied, ApiError, Missing, Rejected, error_of
from memlane_client.outbox.journal import GRACE_S, End, Entry, Journal
from memlane_client.outbox.queue import MOST_TRIES, DeliveryQueue


@dataclass(slots=True)
class Sender:
    """One round at a time: read what was appended, send what is ready, record the ends.

    `on_end` is called with each end, also of adds that another process has sent.
    """

    journal: Journal
    http: httpx.AsyncClient
    on_end: Callable[[End], None]
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    queue: DeliveryQueue = field(default_factory=DeliveryQueue)
    _drop_at: float = 0.0

    async def step(self) -> float | None:
        """One round. Returns seconds until the next attempt; None if nothing is pending."""
        if self.journal.is_moved():
            self.journal.restore(self.queue.entries())
            self.queue = DeliveryQueue(self.queue.retries)
        if not self.journal.sending and not self._take_over():
            for end in self.journal.new_ends():
                self.on_end(end)
            return None
        self.queue.extend(self.journal.new_entries())
        ready = self.queue.ready(self.clock())
        await asyncio.gather(*(self._deliver(entry) for entry in ready))
        self.journal.keep_failing(self.queue.tries())
        if self.clock() >= self._drop_at:
            self._drop_at = self.clock() + GRACE_S
            self.journal.drop_finished({entry.segment for entry in self.queue.entries()})
        return self.queue.pause_s(self.clock())

    def _take_over(self) -> bool:
        """Become the sender, if there is none, and read what is pending."""
        if not self.journal.become_sender():
            return False
        self.queue = DeliveryQueue(self.queue.retries)
        entries = _in_order(self.journal.new_entries())
        ends = {end.key: end for end in self.journal.new_ends()}
        for end in ends.values():
            self.on_end(end)
        self.queue.extend(entry for entry in entries if entry.add.key not in ends)
        self.queue.resume(self.journal.failing())
        return True

    async def _deliver(self, entry: Entry) -> None:
        """Send one add. A failure that another attempt may repair leaves it in the queue."""
        failure = await self._try(entry)
        if not isinstance(failure, ApiError):
            return
        is_over = self.queue.fail_one(entry, self.clock(), str(failure), wall_s=self.wall_clock())
        if is_over:
            self._set_aside(entry, failure)
        elif (follower := self.queue.follower(entry)) is not None:
            await self._try_follower(follower)

    async def _try_follower(self, follower: Entry) -> None:
        """Look for the fault after many tries: an accepted add shows that the server works.

        Then each add before it has one more try, because the server may have recovered since.
        """
        older = self.queue.before(follower)
        failure = await self._try(follower)
        if isinstance(failure, ApiError):
            self.queue.note(follower, self.clock(), str(failure), wall_s=self.wall_clock())
        elif failure:
            for entry in older:
                match await self._try(entry):
                    case ApiError() as again:
                        self._set_aside(entry, again)
                    case False:  # the server is away, or this one is refused
                        return

    async def _try(self, entry: Entry) -> ApiError | bool:
        """Send one add, and record its end. Returns a 500, else True if it was accepted."""
        call = entry.add.call()
        try:
            response = await self.http.send(call.request(self.http))
        except httpx.RequestError as error:  # also a damaged response
            self.queue.fail(self.clock(), f"no response: {type(error).__name__}")
            return False
        return self._judge(entry, response)

    def _judge(self, entry: Entry, response: httpx.Response) -> ApiError | bool:
        """Record the end of an add, or leave it in the queue. Returns as `_try`."""
        match error_of(response):
            case None:
                return self._accepted(entry, response)
            case Rejected() as refusal:
                self._finish(entry, End(entry.add.key, status=refusal.status, reason=str(refusal)))
            case AccessDenied() | Missing() as wrong:
                self.queue.block(self.clock(), str(wrong))
            case ApiError(status=httpx.codes.INTERNAL_SERVER_ERROR) as failure:
                return failure
            case ApiError() as failure:
                self.queue.fail(self.clock(), str(failure), pause_s=failure.retry_after_s)
        return False

    def _accepted(self, entry: Entry, response: httpx.Response) -> bool:
        """Record the event of an accepted add. False if another server has answered."""
        event_id = _event_id(response)
        if event_id is None:
            self.queue.block(self.clock(), "the server at this URL is no Memlane")
            return False
        self._finish(entry, End(entry.add.key, event_id=event_id))
        return True

    def _set_aside(self, entry: Entry, failure: ApiError) -> None:
        """Put an add that always fails with the refused ones, so that the next one is sent."""
        reason = f"set aside after {MOST_TRIES} tries: {failure}"
        self._finish(entry, End(entry.add.key, status=failure.status, reason=reason))

    def _finish(self, entry: Entry, end: End) -> None:
        self.journal.finish(entry, end)
        self.queue.finish(entry, accepted=end.event_id is not None)
        self.on_end(end)


def _in_order(entries: list[Entry]) -> list[Entry]:
    """Each add once, oldest first. Adds that a moved folder had are also behind newer ones."""
    by_key = {entry.add.key: entry for entry in entries}
    if len(by_key) == len(entries):
        return entries
    return sorted(by_key.values(), key=lambda entry: entry.at)


def _event_id(response: httpx.Response) -> str | None:
    """The event's id of an accepted add; None if another server answered."""
    try:
        return str(response.json()["event_id"])
    except (ValueError, KeyError, TypeError):
        return None
