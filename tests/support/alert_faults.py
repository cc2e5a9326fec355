"""Faults of a fleet that its alerts must show, each caused for real and repaired afterwards."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import yaml

from tests.support.alert_fleet import AlertFleet
from tests.support.llm_server import Do
from tests.support.prometheus import RULES
from tests.support.stack import wait_until

# Seconds of the rules that are one second of the test: a minute is two seconds.
SPEED = 30
UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
DURATION = re.compile(r"(\d+)([smhd])")
AGE = re.compile(r"(memlane_\w+_seconds(?:\{[^}]*\})?\) > (?:bool )?)(\d+)")
REPAIRED_S = 120.0
CRASHES = 12
USERS = 20


def compressed_rules(folder: Path) -> Path:
    """Write the rules with every duration, and every age that they compare, divided by SPEED."""

    def shorter(match: re.Match[str]) -> str:
        return f"{int(match[1]) * UNITS_S[match[2]] * 1_000 // SPEED}ms"

    def younger(match: re.Match[str]) -> str:
        return f"{match[1]}{int(match[2]) / SPEED:g}"

    document: dict[str, Any] = yaml.safe_load(RULES.read_text("utf-8"))
    for group in document["groups"]:
        for rule in group["rules"]:
            windows = re.sub(r"\[\w+\]", lambda m: DURATION.sub(shorter, m[0]), rule["expr"])
            rule["expr"] = AGE.sub(younger, windows)
            if "for" in rule:
                rule["for"] = DURATION.sub(shorter, rule["for"])
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump(document), "utf-8")
    return file


@dataclass(frozen=True, slots=True)
class AlertFault:
    """A fault, and the alerts that it must raise. `slow`: alerts that wait for an hour."""

    happens: Callable[[AlertFleet], AbstractAsyncContextManager[None]]
    alerts: frozenset[str]
    slow: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.happens.__name__


@asynccontextmanager
async def worker_killed(fleet: AlertFleet) -> AsyncIterator[None]:
    """The only worker dies, and events wait."""
    await fleet.kill("worker")
    await fleet.add()
    yield
    await fleet.start("worker")


@asynccontextmanager
async def database_locked(fleet: AlertFleet) -> AsyncIterator[None]:
    """Another session locks the table of events for 0.3 s again and again."""

    async def lock() -> None:
        connection = await asyncpg.connect(fleet.postgres.url)
        try:
            while True:
                async with connection.transaction():
                    await connection.execute("LOCK TABLE events IN EXCLUSIVE MODE")
                    await asyncio.sleep(0.3)
                await asyncio.sleep(0.05)
        finally:
            await connection.close()

    async with background(lock), adding(fleet):
        yield


@asynccontextmanager
async def database_stopped(fleet: AlertFleet) -> AsyncIterator[None]:
    """PostgreSQL is killed while adds arrive."""
    async with adding(fleet):
        await asyncio.to_thread(fleet.postgres.kill)
        yield
        await asyncio.to_thread(fleet.postgres.start)


@asynccontextmanager
async def provider_fails(fleet: AlertFleet) -> AsyncIterator[None]:
    """The model's provider answers 500, for longer than an event may wait."""
    async with provider_answers(fleet, "500"):
        yield


@asynccontextmanager
async def provider_rejects(fleet: AlertFleet) -> AsyncIterator[None]:
    """The model's provider refuses the key."""
    async with provider_answers(fleet, "401"):
        yield


@asynccontextmanager
async def provider_answers(fleet: AlertFleet, do: Do) -> AsyncIterator[None]:
    fleet.llm.on("any", do)
    async with adding(fleet):
        yield
    fleet.llm.rules.clear()


@asynccontextmanager
async def vectors_stopped(fleet: AlertFleet) -> AsyncIterator[None]:
    """Chroma is killed while users search."""
    await asyncio.to_thread(fleet.chroma.kill)
    async with background(lambda: searching(fleet)):
        yield
    await asyncio.to_thread(fleet.chroma.start)


@asynccontextmanager
async def receiver_fails(fleet: AlertFleet) -> AsyncIterator[None]:
    """The receiver of webhooks answers 500."""
    fleet.webhook_status = 500
    async with adding(fleet):
        yield
    fleet.webhook_status = 200


@asynccontextmanager
async def sweeper_killed(fleet: AlertFleet) -> AsyncIterator[None]:
    """The only sweeper dies."""
    await fleet.kill("sweeper")
    yield
    await fleet.start("sweeper")


@asynccontextmanager
async def broker_stopped(fleet: AlertFleet) -> AsyncIterator[None]:
    """The broker is killed while adds arrive."""
    await asyncio.to_thread(fleet.redis.kill)
    async with adding(fleet):
        yield
    await asyncio.to_thread(fleet.redis.start)


@asynccontextmanager
async def worker_killed_at_work(fleet: AlertFleet) -> AsyncIterator[None]:
    """A worker dies while the events of many users run."""
    fleet.llm.on("any", "hang")
    for _ in range(CRASHES):
        await fleet.add()

    async def running() -> bool:
        running = await fleet.value("SELECT count(*) FROM lanes WHERE state = 'RUNNING'")
        return bool(running >= CRASHES)

    await wait_until(running, within_s=REPAIRED_S, what="events that run")
    await fleet.kill("worker")
    fleet.llm.rules.clear()
    yield
    await fleet.start("worker")


@asynccontextmanager
async def sweeper_without_key(fleet: AlertFleet) -> AsyncIterator[None]:
    """The sweeper was started without the key of the seals."""
    await fleet.kill("sweeper")
    await fleet.start("sweeper", MEMLANE_SEAL_KEY="")
    await fleet.add()
    yield
    await fleet.kill("sweeper")
    await fleet.start("sweeper")


@asynccontextmanager
async def seals_changed(fleet: AlertFleet) -> AsyncIterator[None]:
    """A person with the database changes the head of a project's seals."""
    change = "UPDATE seal_projects SET lanes = lanes + $1"
    await fleet.value(change, 1)
    await fleet.add()
    yield
    await fleet.value(change, -1)


@asynccontextmanager
async def graph_stopped(fleet: AlertFleet) -> AsyncIterator[None]:
    """The graph server is killed, and relations change."""
    await asyncio.to_thread(fleet.graph.kill)
    await fleet.add("My sister Ana lives in Oulu.")
    yield
    await asyncio.to_thread(fleet.graph.start)


@asynccontextmanager
async def server_behind(fleet: AlertFleet) -> AsyncIterator[None]:
    """The backlog of the server exceeds its limit."""
    await fleet.kill("worker")
    await fleet.kill("api")
    await fleet.start("api", MEMLANE_MAX_LAG_S="0.1")
    async with adding(fleet):
        yield
    await fleet.kill("api")
    await fleet.start("api")
    await fleet.start("worker")


@asynccontextmanager
async def book_changed(fleet: AlertFleet) -> AsyncIterator[None]:
    """A count of the books is lost."""
    change = "UPDATE books SET amount = amount + $1 WHERE kind = 'SUCCEEDED' AND owner = ''"
    await fleet.value(change, -1)
    yield
    await fleet.value(change, 1)


async def searching(fleet: AlertFleet) -> None:
    """Search again and again, also if the API refuses."""
    while True:
        with suppress(httpx.TransportError):
            await fleet.search("Where do I live?")
        await asyncio.sleep(0.2)


@asynccontextmanager
async def adding(fleet: AlertFleet) -> AsyncIterator[None]:
    """Add turns of a few users, four at a time, also if the API refuses them."""
    numbers = count()

    async def add() -> None:
        while True:
            with suppress(httpx.TransportError):
                number = next(numbers)
                await fleet.post_add(f"I like canoe number {number}.", f"u{number % USERS}")
            await asyncio.sleep(0.2)

    async with background(add), background(add), background(add), background(add):
        yield


@asynccontextmanager
async def background(work: Callable[[], Any]) -> AsyncIterator[None]:
    """Run a coroutine until the block ends."""
    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
