"""Notifications of ended events: sent for verbatim adds; a lost one costs only time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from api.events.watch import EventWatch
from pipeline.domain.errors import ModelRejected
from pipeline.domain.events import AddOptions, Status
from pipeline.domain.vectors import Vector
from pipeline.events import notifications
from pipeline.events.notifications import EndNotifications
from pipeline.events.store import Events, Progress
from pipeline.ledger.engine import connect
from tests.support.embedder_hash import HashEmbedder
from tests.support.engine import Engine
from tests.support.proxy import proxied
from tests.support.stack import wait_until

VERBATIM = AddOptions(infer=False)
END_LISTENERS = text("""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE query LIKE 'LISTEN%' AND datname = current_database()
""")


@dataclass
class ReceivedEnds:
    """Records the notifications, and counts the connections that listened."""

    ends: list[tuple[UUID, Status]] = field(default_factory=list)
    connections: int = 0
    _listening: bool = False

    @property
    def listening(self) -> bool:
        return self._listening

    @listening.setter
    def listening(self, value: bool) -> None:
        self._listening = value
        self.connections += value

    def notify(self, event_id: UUID, status: Status) -> None:
        self.ends.append((event_id, status))

    async def wait_for(self, count: int) -> None:
        async def complete() -> bool:
            return len(self.ends) >= count

        await wait_until(complete, within_s=60, what=f"{count} notifications")

    async def connected(self, times: int = 1) -> None:
        async def enough() -> bool:
            return self.listening and self.connections >= times

        await wait_until(enough, within_s=60, what=f"{times} connections have listened")


class Refusing(HashEmbedder):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise ModelRejected("no")


class Polls(Events):
    """Events that count their polls."""

    polls = 0

    async def progress(self, ids: Sequence[UUID]) -> dict[UUID, Progress]:
        self.polls += 1
        return await super().progress(ids)


@asynccontextmanager
async def listening(url: str, receiver: notifications.Receiver) -> AsyncIterator[None]:
    source = EndNotifications(connect(url, pool_size=1), receiver)
    running = asyncio.create_task(source.run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])
        await source.close()


def url_of(engine: AsyncEngine) -> str:
    return engine.url.render_as_string(hide_password=False)


async def test_the_end_of_a_verbatim_add_is_notified_and_no_other(engine: Engine) -> None:
    received = ReceivedEnds()
    async with listening(url_of(engine.ledger.engine), received):
        await received.connected()
        await engine.add("I like jazz.")
        await engine.drain()
        verbatim = await engine.add("I like tea.", "I like rice.", options=VERBATIM)
        await engine.drain()
        await received.wait_for(1)
    assert received.ends == [(verbatim, Status.SUCCEEDED)]


async def test_a_failure_is_notified(engine: Engine) -> None:
    received = ReceivedEnds()
    engine.services = replace(engine.services, embedder=Refusing())
    async with listening(url_of(engine.ledger.engine), received):
        await received.connected()
        verbatim = await engine.add("I like tea.", options=VERBATIM)
        await engine.drain()
        await received.wait_for(1)
    assert received.ends == [(verbatim, Status.FAILED)]


async def test_a_lost_connection_is_made_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "RECONNECT_S", 0.01)
    received = ReceivedEnds()
    async with listening(url_of(engine.ledger.engine), received):
        await received.connected()
        async with engine.ledger.engine.begin() as connection:
            assert (await connection.execute(END_LISTENERS)).rowcount == 1
        await received.connected(times=2)
        verbatim = await engine.add("I like tea.", options=VERBATIM)
        await engine.drain()
        await received.wait_for(1)
    assert received.ends == [(verbatim, Status.SUCCEEDED)]


async def test_behind_a_pooler_there_are_only_polls(engine: Engine) -> None:
    received = ReceivedEnds()
    async with proxied(url_of(engine.ledger.engine), poses=True) as pooler:
        source = EndNotifications(connect(pooler.url, pool_size=1), received)
        await asyncio.wait_for(source.run(), timeout=30)
        await source.close()
    assert not received.listening


async def test_a_notification_ends_the_wait_without_a_poll(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.events.watch.NOTIFIED_POLL_S", 3600.0)
    events = Polls(engine.ledger.engine)
    watch = EventWatch(events)
    watch.listening = True
    event_id = await engine.add("I like tea.", options=VERBATIM)
    waiting = asyncio.create_task(watch.ended(event_id, timeout_s=30, notified=True))
    await asyncio.sleep(0)
    watch.notify(event_id, Status.SUCCEEDED)
    assert await waiting
    assert events.polls == 0
    await watch.close()


async def test_a_lost_notification_is_made_up_for_by_a_poll(engine: Engine) -> None:
    watch = EventWatch(engine.ledger.events)
    watch.listening = True
    event_id = await engine.add("I like tea.", options=VERBATIM)
    await engine.drain()
    assert await watch.ended(event_id, timeout_s=30, notified=True)
    await watch.close()
