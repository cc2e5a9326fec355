"""Notifications of ended events: LISTEN on a connection of its own.

end_batch.sql sends one for each verbatim add, because a request waits for it. If one is lost, the
request only waits until its next poll.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol
from uuid import UUID

import asyncpg
import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.events import Status
from pipeline.ledger.engine import behind_pooler
from pipeline.ledger.failures import LedgerUnavailable

log = structlog.get_logger()

# As in end_batch.sql. The payload is an event id, a space and the event's final status.
CHANNEL = "memlane_event_ended"
RECONNECT_S = 1.0
# Errors of the listening connection.
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)


class Receiver(Protocol):
    """Receives notifications in the event loop; `listening`: notifications arrive at present."""

    listening: bool

    def notify(self, event_id: UUID, status: Status) -> None:
        """Handle the end of an event."""


class EndNotifications:
    """The connection that receives the notifications of all projects' events."""

    def __init__(self, engine: AsyncEngine, receiver: Receiver) -> None:
        self._engine = engine
        self._receiver = receiver

    async def run(self) -> None:
        """Listen until cancelled; reconnect if the connection is lost.

        Returns at once behind a connection pooler, which has no session to listen on.
        """
        while not behind_pooler(self._engine):
            try:
                await self._listen()
            except (LedgerUnavailable, *DRIVER_ERRORS) as error:
                log.warning("end_notifications_lost", error=type(error).__name__)
            await asyncio.sleep(RECONNECT_S)

    async def close(self) -> None:
        """Close the connection; `run` has ended before."""
        await self._engine.dispose()

    async def _listen(self) -> None:
        """Listen until the connection is closed."""
        closed = asyncio.Event()
        async with self._engine.connect() as connection:
            if behind_pooler(self._engine):
                return
            driver: Any = (await connection.get_raw_connection()).driver_connection
            driver.add_termination_listener(lambda _: closed.set())
            try:
                await driver.add_listener(CHANNEL, self._notified)
                self._receiver.listening = True
                await closed.wait()
            finally:
                self._receiver.listening = False
                await connection.invalidate()  # else the pool would hand out a listening connection

    def _notified(self, driver: Any, pid: int, channel: str, payload: str) -> None:
        event_id, _, status = payload.partition(" ")
        try:
            self._receiver.notify(UUID(event_id), Status(status))
        except ValueError:
            log.warning("end_notification_dropped")
