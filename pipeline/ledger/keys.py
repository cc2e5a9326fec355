"""API keys. A key is shown once; the ledger keeps only its SHA-256."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain import Access
from pipeline.errors import Conflict, Forbidden, InvalidInput, NotFound
from pipeline.ledger.projects import Project
from pipeline.ledger.schema import api_keys, members, organizations, projects
from pipeline.ledger.secret import Secret

NO_SUCH_KEY = "No such key in this organization."
LAST_KEY = (
    "This is the organization's last admin key that belongs to no member and does not expire; "
    "without one nobody could make another. Make the next one first."
)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a key opens. `ends_in_s`: seconds until it expires, infinite for never."""

    key_id: UUID
    project: Project
    access: Access
    ends_in_s: float = math.inf

    def require(self, needed: Access) -> None:
        """Errors: Forbidden."""
        if not self.access.allows(needed):
            raise Forbidden(f"This takes a key of scope {needed}; this one's is {self.access}.")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is listed: all but the key."""

    id: UUID
    project_id: UUID
    name: str
    prefix: str
    member: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    access: Access


class ApiKeys:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def grant(self, key: str) -> Grant | None:
        """What a key opens, or None for one that was never made, is revoked or has expired."""
        query = (
            _selected(
                api_keys.c.id.label("key_id"),
                *(projects.c[name] for name in ("id", "organization_id", "name")),
                func.extract("epoch", api_keys.c.expires_at - func.now()).label("ends_in_s"),
            )
            .join(projects, projects.c.id == api_keys.c.project_id)
            .where(api_keys.c.digest == Secret(key).digest, _valid())
        )
        async with self._engine.connect() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            return None
        project = Project(row.id, row.organization_id, row.name)
        ends_in_s = math.inf if row.ends_in_s is None else float(row.ends_in_s)
        return Grant(row.key_id, project, Access(row.access), ends_in_s)

    async def make(
        self,
        project_id: UUID,
        *,
        name: str,
        access: Access,
        member: str | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[ApiKey, Secret]:
        """A new key, in clear for the only time.

        Errors: NotFound for somebody who is not a member; InvalidInput for a time that is over.
        """
        secret = Secret()
        values = {"project_id": project_id, "name": name, "scope": access, "member": member}
        kept = {"digest": secret.digest, "prefix": secret.prefix, "expires_at": expires_at}
        async with self._engine.begin() as connection:
            if member is not None:
                await _hold_member(connection, project_id, member)
            await connection.execute(insert(api_keys).values(values | kept))
            made = _listed().where(api_keys.c.digest == secret.digest)
            row = (await connection.execute(made)).one()
            if expires_at and expires_at <= row.created_at:
                raise InvalidInput("expires_at: this time is over; give one to come.")
        return _as_key(row), secret

    async def of_project(self, project_id: UUID) -> Sequence[ApiKey]:
        """All it ever had, newest first: what was revoked stays on record."""
        query = _listed().where(api_keys.c.project_id == project_id)
        async with self._engine.connect() as connection:
            rows = await connection.execute(query.order_by(api_keys.c.created_at.desc()))
        return [_as_key(row) for row in rows]

    async def revoke(self, organization_id: UUID, key_id: UUID) -> None:
        """End a key; again changes nothing. Errors: NotFound; Conflict for the last admin key."""
        async with self._engine.begin() as connection:
            await hold(connection, organization_id)
            if not await connection.scalar(select(_mine(organization_id, api_keys.c.id == key_id))):
                raise NotFound(NO_SUCH_KEY)
            await keep_one_admin(connection, organization_id, without=api_keys.c.id == key_id)
            await connection.execute(
                update(api_keys)
                .where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
                .values(revoked_at=func.now())
            )


async def hold(connection: AsyncConnection, organization_id: UUID) -> None:
    """One at a time may take keys away from an organization."""
    query = select(organizations.c.id).where(organizations.c.id == organization_id)
    await connection.execute(query.with_for_update())


async def keep_one_admin(
    connection: AsyncConnection, organization_id: UUID, *, without: ColumnElement[bool]
) -> None:
    """Errors: Conflict where no lasting admin key would be left, and one of these is."""
    lasting = and_(
        api_keys.c.scope == Access.ADMIN,
        api_keys.c.revoked_at.is_(None),
        api_keys.c.expires_at.is_(None),
        api_keys.c.member.is_(None),
    )
    taken = await connection.scalar(select(_mine(organization_id, lasting, without)))
    if taken and not await connection.scalar(select(_mine(organization_id, lasting, ~without))):
        raise Conflict(LAST_KEY)


def _mine(organization_id: UUID, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Has the organization a key like that?"""
    return exists(
        select(api_keys.c.id)
        .join(projects, projects.c.id == api_keys.c.project_id)
        .where(projects.c.organization_id == organization_id, *conditions)
    )


def _selected(*columns: ColumnElement[Any]) -> Select[Any]:
    """Keys with what they may do: a reader's key reads, whatever it was made for."""
    access = case((members.c.role == "READER", Access.READ.value), else_=api_keys.c.scope)
    owner = and_(
        members.c.project_id == api_keys.c.project_id, members.c.email == api_keys.c.member
    )
    return select(*columns, access.label("access")).select_from(api_keys).outerjoin(members, owner)


def _listed() -> Select[Any]:
    names = "id project_id name prefix member created_at expires_at revoked_at"
    return _selected(*(api_keys.c[name] for name in names.split()))


def _valid() -> ColumnElement[bool]:
    return and_(
        api_keys.c.revoked_at.is_(None),
        or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > func.now()),
    )


async def _hold_member(connection: AsyncConnection, project_id: UUID, email: str) -> None:
    query = select(members.c.email).where(
        members.c.project_id == project_id, members.c.email == email
    )
    if await connection.scalar(query.with_for_update()) is None:
        raise NotFound("Nobody with this email is a member of the project; add them first.")


def _as_key(row: Sequence[Any]) -> ApiKey:
    key = ApiKey(*row)
    return replace(key, access=Access(key.access))
