"""Routes that also take a user's token, and the confinement of such a request to that user.

Every other route refuses a user's token. A route that takes one has two parameters:

UserReading, UserCorrecting, UserDeleting   the call; a token requires the right of this name
OfUser                                      the user of the token; None for an API key

and uses the second for what it reads and changes. Routes of one memory have OfOwner instead: the
user of the token, and the ids in the query string of any caller, all of which the memory must have.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeAlias
from uuid import UUID

from fastapi import Depends, Request

from api.audit import recording as audit
from api.auth.tenant import Authenticated, own_call
from api.dependencies import ApiCall, Given
from api.http.ids import EntityIds
from pipeline.domain.errors import Forbidden, NotFound
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import Access, Right

NOT_YOURS = "Memory not found!"
# Names and values of entity ids; a name can occur twice.
NamedOwner: TypeAlias = tuple[tuple[str, str], ...]


def _allowing(
    right: Right, access: Access
) -> Callable[[Request, Given, Authenticated], Coroutine[Any, Any, ApiCall]]:
    """A dependency: the call with a key with this access, or with a token with this right."""

    async def allowed(request: Request, api: Given, grant: Authenticated) -> ApiCall:
        if grant.user is None:
            grant.require(access)
        else:
            grant.user.require(right)
        call = await own_call(request, api, grant)
        if right is not Right.READ:
            await audit.begin(request, call.ledger.audit, grant, call.project.id)
        return call

    return allowed


async def user_of(grant: Authenticated) -> str | None:
    """The user of the token; None for an API key."""
    return None if grant.user is None else grant.user.user_id


OfUser = Annotated[str | None, Depends(user_of)]


async def owner_of(user: OfUser, ids: EntityIds) -> NamedOwner:
    """The ids in the query string, and the user of the token."""
    return (*ids.items(), *(() if user is None else (("user_id", user),)))


UserReading = Annotated[ApiCall, Depends(_allowing(Right.READ, Access.READ))]
UserCorrecting = Annotated[ApiCall, Depends(_allowing(Right.CORRECT, Access.WRITE))]
UserDeleting = Annotated[ApiCall, Depends(_allowing(Right.DELETE, Access.WRITE))]
OfOwner = Annotated[NamedOwner, Depends(owner_of)]


def require_key(user: str | None, option: str) -> None:
    """Refuse an option that could tell of other users. Errors: Forbidden for a user's token."""
    if user is not None:
        raise Forbidden(f"{option} takes an API key, not a user's token; leave it out.")


async def require_own(call: ApiCall, memory_id: UUID, owner: NamedOwner) -> None:
    """Check that a memory is the owner's. Errors: NotFound, as for an unknown id."""
    if owner:
        memory = await call.ledger.memories.get(call.project.id, memory_id)
        require_owner(memory.scope, owner)


def require_owner(scope: Scope, owner: NamedOwner) -> None:
    """Check that a scope has all ids of an owner. Errors: NotFound, as for an unknown memory."""
    if not is_of(scope, owner):
        raise NotFound(NOT_YOURS)


def is_of(scope: Scope, owner: NamedOwner) -> bool:
    """Tell if a scope has all ids of an owner."""
    return all(getattr(scope, name) == value for name, value in owner)
