"""The tenant check: which project a request's key may reach, and with which scope.

The tenant comes from the key. Organizations and projects that the request names in its path, query
or body must be the key's own, or for an admin key other projects of its organization; all others
are reported as not found.

Granted             the key's grant; a user's token is refused
Validity            a function that tells later if the key is still valid
Authenticated       the grant of a key or of a user's token: see api.auth.users
Caller              a call with the key's project; GET requires scope read, any other method write
Adding              the same for adds; requires scope write, and is not in the audit log
Reader              the same; any method requires scope read
Admin               a call with the named project; GET requires scope read, any other method admin
OrganizationAdmin   the same; requires an admin key that belongs to no member
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import Depends, Header, Request, Security
from fastapi.security import APIKeyHeader

from api.audit import recording as audit
from api.dependencies import Api, ApiCall, Given
from api.errors import Unauthorized
from pipeline.domain.errors import Forbidden, NotFound
from pipeline.domain.tenants import Access
from pipeline.ledger.fair_pool import take_turns_as
from pipeline.tenants.api_keys import NOT_FOR_USERS, Grant
from pipeline.tenants.projects import NO_SUCH_PROJECT
from pipeline.tenants.secret import Secret

TOKEN = APIKeyHeader(
    name="Authorization",
    scheme_name="API key",
    description="`Token <key>`, as the Mem0 clients send it; `Bearer <key>` does as well.",
    auto_error=False,
)
HOW = "Send your API key as `Authorization: Token <key>`."


async def authenticated(
    api: Given,
    request: Request,
    authorization: Annotated[str | None, Security(TOKEN)] = None,
    x_api_key: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Grant:
    """The grant of the key or user's token in `Authorization: Token` or `Bearer`, or in
    `X-API-Key`.
    """
    scheme, _, key = (authorization or "").partition(" ")
    if scheme.lower() not in ("token", "bearer") or not key:
        key = x_api_key or ""
    if not key:
        raise Unauthorized(f"No API key. {HOW}")
    address = request.client.host if request.client else ""
    request.state.key_digest = Secret(key.strip()).digest
    grant = await api.keys.grant_of(request.state.key_digest, address)
    if grant is None:
        raise Unauthorized(f"This API key is not valid. {HOW}")
    take_turns_as(grant.project.id)
    request.state.project_id = str(grant.project.id)
    request.state.origins = grant.project.allowed_origins
    if allowance := api.keys.allowance(grant):
        request.state.headers = allowance.headers()
        allowance.require()
    return grant


def validity(api: Given, request: Request, _: Authenticated) -> Callable[[], Awaitable[bool]]:
    """A check for a long response: it tells later if the key of the request is still valid."""

    async def is_valid() -> bool:
        return await api.keys.grant_of(request.state.key_digest) is not None

    return is_valid


async def granted(grant: Authenticated) -> Grant:
    """The grant of an API key. Errors: Forbidden for a user's token."""
    if grant.user is not None:
        raise Forbidden(NOT_FOR_USERS)
    return grant


async def caller(request: Request, api: Given, grant: Granted) -> ApiCall:
    """The call. GET requires a key with read scope, other methods one with write scope."""
    api.in_use()
    grant.require(Access.READ if request.method == "GET" else Access.WRITE)
    call = await own_call(request, api, grant)
    if request.method != "GET":
        await audit.begin(request, call.ledger.audit, grant, call.project.id)
    return call


async def adding(request: Request, api: Given, grant: Granted) -> ApiCall:
    """The call of an add: it has a receipt, and must cost no further commit."""
    grant.require(Access.WRITE)
    return await own_call(request, api, grant)


async def reader(request: Request, api: Given, grant: Granted) -> ApiCall:
    """The call of a route that only reads, even if its method is POST."""
    grant.require(Access.READ)
    return await own_call(request, api, grant)


async def own_call(request: Request, api: Api, grant: Grant) -> ApiCall:
    """A call with the key's project. Errors: NotFound if the request names another one."""
    if (await NamedIds.by(request)).others(grant):
        raise NotFound(NO_SUCH_PROJECT)
    return ApiCall(api, grant, grant.project)


async def administration(request: Request, api: Given, grant: Granted) -> ApiCall:
    """The named project. GET requires any key, other methods an admin key.

    An admin key has access to all projects of its organization; a member's admin key has access to
    its own project, and to others whose OWNER the member is.
    """
    named = await _administered(request, api, grant)
    if request.method != "GET":
        await audit.begin(request, api.stores.ledger.audit, grant, named.project.id)
    return named


async def _administered(request: Request, api: Api, grant: Grant) -> ApiCall:
    """The named project, if the key may administer it."""
    grant.require(Access.READ if request.method == "GET" else Access.ADMIN)
    named, own = await NamedIds.by(request), grant.project
    if named.organizations - {str(own.organization_id)}:
        raise NotFound("Organization not found.")
    if not named.others(grant):
        return ApiCall(api, grant, own)
    if len(named.projects) > 1 or not grant.access.allows(Access.ADMIN):
        raise NotFound(NO_SUCH_PROJECT)
    wanted, ledger = as_uuid(*named.projects), api.stores.ledger
    project = await ledger.projects.of(own.organization_id, wanted)
    if grant.member and not await ledger.keys.is_owner(own.organization_id, wanted, grant.member):
        raise NotFound(NO_SUCH_PROJECT)
    return ApiCall(api, grant, project)


async def organization_administration(admin: Admin) -> ApiCall:
    """Like `administration`; requires an admin key that belongs to no member."""
    admin.grant.require_organization()
    return admin


def as_uuid(value: str) -> UUID:
    """Parse a project id. Errors: NotFound, also for an invalid UUID."""
    try:
        return UUID(value)
    except ValueError:
        raise NotFound(NO_SUCH_PROJECT) from None


@dataclass(frozen=True, slots=True)
class NamedIds:
    """Ids in path, query or body, as the client wrote them."""

    organizations: frozenset[str]
    projects: frozenset[str]

    @classmethod
    async def by(cls, request: Request) -> NamedIds:
        """Read the ids from path, query and body of a request."""
        given = [
            *request.path_params.items(),
            *request.query_params.multi_items(),
            *(await _body(request)).items(),
        ]
        return cls(frozenset(_ids(given, "org_id")), frozenset(_ids(given, "project_id")))

    def others(self, grant: Grant) -> bool:
        """True if any of them is not the key's own organization or project."""
        own = grant.project
        return not (
            self.organizations <= {str(own.organization_id)} and self.projects <= {str(own.id)}
        )


def _ids(given: list[tuple[str, Any]], name: str) -> Iterator[str]:
    return (str(value).lower() for key, value in given if key == name and value)


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object in the body, parsed only if it may name a tenant: parsing costs time."""
    if request.method == "GET":
        return {}
    raw = await request.body()
    if b'"project_id"' not in raw and b'"org_id"' not in raw:
        return {}
    try:
        sent = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return {}
    return sent if isinstance(sent, dict) else {}


Authenticated = Annotated[Grant, Depends(authenticated)]
Granted = Annotated[Grant, Depends(granted)]
Validity = Annotated[Callable[[], Awaitable[bool]], Depends(validity)]
Caller = Annotated[ApiCall, Depends(caller)]
Adding = Annotated[ApiCall, Depends(adding)]
Reader = Annotated[ApiCall, Depends(reader)]
Admin = Annotated[ApiCall, Depends(administration)]
OrganizationAdmin = Annotated[ApiCall, Depends(organization_administration)]
