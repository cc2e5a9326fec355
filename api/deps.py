"""What routes are given: the process's services and the caller's project."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Header, Request, Security
from fastapi.security import APIKeyHeader
from sqlalchemy.exc import SQLAlchemyError

from api.errors import Unauthorized
from api.gate import Gate
from api.watch import EventWatch
from pipeline import telemetry
from pipeline.bootstrap import Stores
from pipeline.errors import TransientError
from pipeline.ledger.projects import Project, Projects
from pipeline.ports import Dispatcher
from pipeline.settings import Settings

# How long a revoked key may still work, in exchange for a look-up a key and not a request.
KEY_CACHE_S = 5.0
MOST_KEYS = 10_000
PING_S = 2.0
TOKEN = APIKeyHeader(
    name="Authorization",
    scheme_name="API key",
    description="`Token <key>`, as the Mem0 clients send it; `Bearer <key>` does as well.",
    auto_error=False,
)
HOW = "Send your API key as `Authorization: Token <key>`."


@dataclass(slots=True)
class KeyRing:
    """Projects by API key, remembered for seconds. Wrong keys are not remembered."""

    projects: Projects
    _known: dict[str, tuple[float, Project]] = field(default_factory=dict)

    async def project(self, key: str) -> Project | None:
        known = self._known.get(key)
        if known and known[0] > time.monotonic():
            return known[1]
        project = await self.projects.of_key(key)
        if len(self._known) >= MOST_KEYS:
            self._known.clear()
        if project:
            self._known[key] = (time.monotonic() + KEY_CACHE_S, project)
        return project


@dataclass(frozen=True, slots=True)
class Api:
    """Everything the routes work with; one a process."""

    settings: Settings
    stores: Stores
    dispatcher: Dispatcher
    keys: KeyRing
    watch: EventWatch
    gate: Gate

    async def health(self) -> dict[str, str]:
        """Each store by name: ok, or what it raised."""
        pings = {"ledger": self.stores.ledger.ping, "vectors": self.stores.vectors.ping}
        return {name: await _state(ping) for name, ping in pings.items()}

    async def measure(self) -> None:
        """Bring the gauges that only the ledger knows up to date."""
        counts, oldest_s = await self.stores.ledger.events.in_flight()
        for status, count in counts.items():
            telemetry.events_in_flight.labels(status).set(count)
        telemetry.queue_oldest_seconds.set(oldest_s)
        books = await self.stores.ledger.events.accounts()
        for status in telemetry.LEDGER_STATUSES:
            telemetry.ledger_events.labels(status).set(getattr(books, status))
        telemetry.ledger_balanced.set(books.balanced)


async def _state(ping: Callable[[], Awaitable[None]]) -> str:
    try:
        async with asyncio.timeout(PING_S):
            await ping()
    except (TransientError, SQLAlchemyError, OSError) as error:
        return type(error).__name__
    return "ok"


async def api_of(request: Request) -> Api:
    found: Api = request.app.state.api
    return found


async def caller(
    api: Annotated[Api, Depends(api_of)],
    authorization: Annotated[str | None, Security(TOKEN)] = None,
    x_api_key: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Project:
    """The project of the key: from `Authorization: Token` or `Bearer`, or `X-API-Key`."""
    scheme, _, key = (authorization or "").partition(" ")
    if scheme.lower() not in ("token", "bearer") or not key:
        key = x_api_key or ""
    if not key:
        raise Unauthorized(f"No API key. {HOW}")
    project = await api.keys.project(key.strip())
    if project is None:
        raise Unauthorized(f"This API key is not valid. {HOW}")
    return project


Given = Annotated[Api, Depends(api_of)]
Caller = Annotated[Project, Depends(caller)]
