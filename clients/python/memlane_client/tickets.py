"""Tickets: the handle of an add, which leads to its event and receipt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass

from memlane_client.errors import NotEnded
from memlane_client.receipts import Receipt

RECEIPT_S = 60.0


@dataclass(frozen=True, slots=True)
class Ticket:
    """An add of the synchronous client. `key` is its Idempotency-Key."""

    key: str
    _event: Future[str]
    _read: Callable[[str, float], Receipt]

    @property
    def accepted(self) -> bool:
        """True if the server has accepted the add."""
        return self._event.done() and self._event.exception() is None

    def event_id(self, timeout: float | None = None) -> str:
        """Wait until the server has accepted the add. Returns the event's id.

        Errors: NotEnded after `timeout` seconds; Rejected if the server refuses the add.
        """
        try:
            return self._event.result(timeout)
        except TimeoutError:
            raise NotEnded(f"not accepted after {timeout} s; the outbox goes on") from None

    def receipt(self, timeout: float = RECEIPT_S) -> Receipt:
        """Wait for the end of the event. Errors: EventFailed, NotEnded, Rejected."""
        return self._read(self.event_id(timeout), timeout)


@dataclass(frozen=True, slots=True)
class AsyncTicket:
    """An add of the asynchronous client. `key` is its Idempotency-Key."""

    key: str
    _event: Future[str]
    _read: Callable[[str, float], Awaitable[Receipt]]

    @property
    def accepted(self) -> bool:
        """True if the server has accepted the add."""
        return self._event.done() and self._event.exception() is None

    async def event_id(self, timeout: float | None = None) -> str:  # noqa: ASYNC109
        """Wait until the server has accepted the add. Returns the event's id.

        Errors: NotEnded after `timeout` seconds; Rejected if the server refuses the add.
        """
        waiting = asyncio.shield(asyncio.wrap_future(self._event))
        try:
            async with asyncio.timeout(timeout):
                return await waiting
        except TimeoutError:
            raise NotEnded(f"not accepted after {timeout} s; the outbox goes on") from None

    async def receipt(self, timeout: float = RECEIPT_S) -> Receipt:  # noqa: ASYNC109
        """Wait for the end of the event. Errors: EventFailed, NotEnded, Rejected."""
        return await self._read(await self.event_id(timeout), timeout)


def accepted(event_id: str) -> Future[str]:
    """The future of an add that the server has accepted already."""
    future: Future[str] = Future()
    future.set_result(event_id)
    return future
