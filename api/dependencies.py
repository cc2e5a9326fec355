"""Dependencies of routes: the process's services, and the tenant of the caller's key.

Given     the services
Granted   the key's grant
Caller    the key's project; GET requires scope read, any other method write
Reader    the key's project; any method requires scope read
Admin     the grant and the named project; GET requires scope read, any other method admin
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Header, Request, Security
from fastapi.security import APIKeyHeader

from api.auth.key_cache import KeyRing
from api.auth.named_tenant import Named
from api.backpressure import Gate
from api.errors import Unauthorized
from api.event_watch import EventWatch
from api.figures import Figures
from pipeline.bootstrap import Stores
from pipeline.domain.errors import ModelUnavailable, NotFound, StoreUnavailable, TransientError
from pipeline.domain.tenants import Access
from pipeline.ledger.failures import LEDGER_FAILURES
from pipeline.ports import Dispatcher, Reranker
from pipeline.search.concurrency import Turnstile
from pipeline.settings import Settings
from pipeline.tenants.api_keys import Grant
from pipeline.tenants.projects import NO_SUCH_PROJECT, Project

PING_S = 2.0
# Longer than the 12 s in which a group of adds is written or fails.
STUCK_S = 20.0
TOKEN = APIKeyHeader(
    name="Authorization",
    scheme_name="API key",
    description="`Token <key>`, as the Mem0 clients send it; `Bearer <key>` does as well.",
    auto_error=False,
)
HOW = "Send your API key as `Authorization: Token <key>`."


@dataclass(frozen=True, slots=True)
class Api:
    """The services that routes use; one for each process."""

    settings: Settings
    stores: Stores
    dispatcher: Dispatcher
    keys: KeyRing
    watch: EventWatch
    gate: Gate
    figures: Figures
    reranker: Reranker | None = None
    turnstile: Turnstile = field(default_factory=Turnstile)

    async def health(self) -> dict[str, str]:
        """State of each store and the model: `ok`, or the name of the error."""
        pings = {
            "ledger": self._check_ledger,
            "vectors": self.stores.vectors.ping,
            "model": self._check_model,
        }
        return {name: await _state(ping) for name, ping in pings.items()}

    async def _check_ledger(self) -> None:
        """Ping the ledger. Errors: as `Ledger.ping`; StoreUnavailable if adds are not written."""
        await self.stores.ledger.ping()
        if self.stores.ledger.inbox.waited_s > STUCK_S:
            raise StoreUnavailable("adds are not written")

    async def _check_model(self) -> None:
        """Check the model's circuit breaker, because a call would cost money.

        Errors: ModelUnavailable.
        """
        if await self.stores.ledger.circuits.is_down(self.settings.llm.model):
            raise ModelUnavailable(f"{self.settings.llm.model} does not answer.")


@dataclass(frozen=True, slots=True)
class Administration:
    """A grant, and the project named in path, query or body, or else the key's own project."""

    grant: Grant
    project: Project


async def _state(ping: Callable[[], Awaitable[None]]) -> str:
    try:
        async with asyncio.timeout(PING_S):
            await ping()
    except (TransientError, *LEDGER_FAILURES) as error:
        return type(error).__name__
    return "ok"


async def api_of(request: Request) -> Api:
    """The services of this process."""
    api: Api = request.app.state.api
    return api


async def granted(
    api: Annotated[Api, Depends(api_of)],
    request: Request,
    authorization: Annotated[str | None, Security(TOKEN)] = None,
    x_api_key: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Grant:
    """The grant of the key in `Authorization: Token` or `Bearer`, or in `X-API-Key`."""
    scheme, _, key = (authorization or "").partition(" ")
    if scheme.lower() not in ("token", "bearer") or not key:
        key = x_api_key or ""
    if not key:
        raise Unauthorized(f"No API key. {HOW}")
    address = request.client.host if request.client else ""
    grant = await api.keys.grant(key.strip(), address)
    if grant is None:
        raise Unauthorized(f"This API key is not valid. {HOW}")
    if allowance := api.keys.allowance(grant):
        request.state.headers = allowance.headers()
        allowance.require()
    return grant


async def caller(request: Request, grant: Annotated[Grant, Depends(granted)]) -> Project:
    """The key's project. GET requires a key with read scope, other methods one with write scope."""
    grant.require(Access.READ if request.method == "GET" else Access.WRITE)
    return await _own(request, grant)


async def reader(request: Request, grant: Annotated[Grant, Depends(granted)]) -> Project:
    """The key's project, for a route that only reads, even if its method is POST."""
    grant.require(Access.READ)
    return await _own(request, grant)


async def _own(request: Request, grant: Grant) -> Project:
    if (await Named.by(request)).others(grant):
        raise NotFound(NO_SUCH_PROJECT)
    return grant.project


async def administration(
    request: Request,
    api: Annotated[Api, Depends(api_of)],
    grant: Annotated[Grant, Depends(granted)],
) -> Administration:
    """The named project. GET requires any key, other methods an admin key.

    An admin key has access to all projects of its organization.
    """
    grant.require(Access.READ if request.method == "GET" else Access.ADMIN)
    named, own = await Named.by(request), grant.project
    if named.organizations - {str(own.organization_id)}:
        raise NotFound("Organization not found.")
    if not named.others(grant):
        return Administration(grant, own)
    if len(named.projects) > 1 or not grant.access.allows(Access.ADMIN):
        raise NotFound(NO_SUCH_PROJECT)
    [wanted] = named.projects
    project = await api.stores.ledger.projects.of(own.organization_id, as_uuid(wanted))
    return Administration(grant, project)


def as_uuid(value: str) -> UUID:
    """Parse a project id. Errors: NotFound, also for an invalid UUID."""
    try:
        return UUID(value)
    except ValueError:
        raise NotFound(NO_SUCH_PROJECT) from None


Given = Annotated[Api, Depends(api_of)]
Granted = Annotated[Grant, Depends(granted)]
Caller = Annotated[Project, Depends(caller)]
Reader = Annotated[Project, Depends(reader)]
Admin = Annotated[Administration, Depends(administration)]
