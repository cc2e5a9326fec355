"""The HTTP API over a real ledger, without Celery: tests run the queued hints themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI

from api.access_log import AccessLog
from api.app import create_app, limits
from api.auth.key_cache import KeyRing
from api.backpressure import Backpressure
from api.dependencies import Api
from api.events.watch import EventWatch
from api.search.read_sample import ReadSample
from api.system.figures import Figures
from pipeline.adapters.vectors_chroma import ChromaVectors
from pipeline.bootstrap import Stores
from pipeline.domain.events import AddOptions
from pipeline.domain.filters import parse
from pipeline.domain.lanes import Hint
from pipeline.domain.passages import PassageKey
from pipeline.domain.vectors import from_bytes
from pipeline.lanes.load import LoadView
from pipeline.ports import Dispatcher
from pipeline.search.where import Where
from pipeline.settings import Settings
from pipeline.stores import Ledger
from tests.support.described import as_described
from tests.support.embedder_hash import DIMENSIONS
from tests.support.engine import Engine

LATER_S = 3_600.0
UNREACHABLE_URL = "http://127.0.0.1:9"
ADD, LIST, SEARCH = "/v3/memories/add/", "/v3/memories/", "/v3/memories/search/"
MAYA = {"user_id": "maya"}
LIVES = {"messages": "I live in Berlin."} | MAYA


@dataclass
class Workers:
    """Dispatcher that runs each hint at once, in a background task."""

    engine: Engine
    running: list[asyncio.Task[None]] = field(default_factory=list)

    def kick(self, hint: Hint, project_id: UUID) -> None:
        self.engine.hints.kick(hint, project_id)
        self.running.append(asyncio.create_task(self.engine.drain()))


@dataclass
class Service:
    """The API of one process, its engine, and a client with the project's key."""

    engine: Engine
    key: str
    client: httpx.AsyncClient
    app: FastAPI

    @property
    def api(self) -> Api:
        api: Api = self.app.state.api
        return api

    async def add(self, *texts: str, **body: object) -> str:
        """Add messages and run the workers; return the event id."""
        turns = [{"role": "user", "content": text} for text in texts]
        answer = await self.client.post(ADD, json={"messages": turns} | MAYA | body)
        assert answer.status_code == 200, answer.text
        await self.engine.drain()
        return str(answer.json()["event_id"])

    async def event(self, event_id: str) -> dict[str, Any]:
        return dict((await self.client.get(f"/v1/event/{event_id}/")).json())

    async def listed(self, **filters: object) -> list[dict[str, Any]]:
        answer = await self.client.post(LIST, json={"filters": filters or MAYA})
        assert answer.status_code == 200, answer.text
        return list(answer.json()["results"])

    async def search(self, query: str, **body: object) -> list[dict[str, Any]]:
        answer = await self.client.post(SEARCH, json={"query": query, "filters": MAYA} | body)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["results"])


@asynccontextmanager
async def serving(
    ledger: Ledger,
    *,
    sync_wait_s: float | None = None,
    workers: bool = False,
    traces_url: str | None = None,
    dimensions: int = DIMENSIONS,
) -> AsyncIterator[Service]:
    """A service as the API's lifespan builds it, with fakes for vectors and broker.

    `dimensions`: floats of a vector of its embedder. `sync_wait_s`: the longest wait for an event's
    end; without `workers` a wait has no end but this one, so it is short.
    """
    sync_wait_s = sync_wait_s if sync_wait_s is not None else 30.0 if workers else 0.05
    project, key = await ledger.projects.create("mine")
    engine = replace(await Engine.create(ledger, dimensions=dimensions), project=project)
    services = engine.services
    chroma = ChromaVectors(UNREACHABLE_URL)
    stores = Stores(ledger, chroma, services.embedder, services.index, engine.turns)
    settings = Settings(sync_wait_s=sync_wait_s, max_body_bytes=100_000, traces_url=traces_url)
    watch = EventWatch(ledger.events)
    dispatcher: Dispatcher = Workers(engine) if workers else engine.hints
    app = create_app(settings)
    backpressure = Backpressure(LoadView(ledger.engine), limits(settings))
    # Nothing is written behind a test's back, however long it takes.
    figures = Figures(ledger.balance, ledger.graph_outbox, ledger.queue, written_after_s=LATER_S)
    keys, accesses, reads = (
        KeyRing(ledger.keys),
        AccessLog(ledger.accesses, every_s=LATER_S),
        ReadSample(ledger.reads, every_s=LATER_S),
    )
    app.state.api = Api(
        settings, stores, dispatcher, keys, watch, backpressure, figures, accesses, reads
    )
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport,
        base_url="http://memlane",
        headers={"Authorization": f"Token {key}", "Content-Type": "application/json"},
        event_hooks={"response": [as_described]},
    ) as client:
        yield Service(engine, key, client, app)
    await figures.close()
    await reads.close()
    await watch.close()
    await stores.vectors.close()


@asynccontextmanager
async def stranger(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the same server without a key."""
    transport = httpx.ASGITransport(service.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://memlane") as client:
        yield client


def error_of(answer: httpx.Response) -> str:
    """Message of an error, which must be the same under each key that clients read."""
    body = answer.json()
    assert isinstance(body["error"], str), body
    assert body["error"] == body["detail"] == body["message"]
    return str(body["error"])


async def verbatim(service: Service, *texts: str, **options: Any) -> None:
    """Store these texts as they are, one event each, oldest first."""
    for text in texts:
        await service.engine.add(text, options=AddOptions(infer=False, **options))
        await service.engine.drain()


async def assert_vectors_fit(service: Service) -> None:
    """Check that each memory's vector is that of its text."""
    embedder, ledger = service.engine.services.embedder, service.engine.ledger
    where = Where.of(service.engine.project.id, parse(MAYA), facts=True, turns=False, expired=True)
    for stored in await service.listed():
        [vector] = await embedder.embed([stored["memory"]])
        keys = [PassageKey(UUID(stored["id"]))]
        [candidate] = await ledger.passages.candidates(
            where, keys, embedded=keys, embedder=embedder.name
        )
        assert candidate.embedding is not None
        assert from_bytes(candidate.embedding) == pytest.approx(vector, abs=1e-5), stored["memory"]
