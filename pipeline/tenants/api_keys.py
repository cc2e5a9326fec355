"""API keys, and the look-up of keys and users' tokens. The ledger stores only SHA-256 digests."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    Row,
    Select,
    and_,
    any_,
    case,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.decay import Decay
from pipeline.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from pipeline.domain.tenants import Access, OrganizationId, ProjectId, Right
from pipeline.ledger.fetching import fetch, fetch_known, fetch_value
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import api_keys, members, organizations, projects, user_tokens
from pipeline.tenants.projects import Project
from pipeline.tenants.secret import Secret

NOT_FOR_USERS = "This takes an API key; a user's token has access only to the user's own memories."
NO_OPERATOR = "This database has no operator: run `pipeline.migrate` first."
NO_SUCH_KEY = "No such key in this organization."
LAST_KEY = (
    "This is the organization's last admin key that belongs to no member and does not expire; "
    "without one no client could make another. Make the next one first."
)


@dataclass(frozen=True, slots=True)
class UserRights:
    """Rights of a user's token: on the memories of this user, and on no others."""

    token_id: UUID
    user_id: str
    rights: frozenset[Right]

    def require(self, needed: Right) -> None:
        """Check that the token has the right `needed`. Errors: Forbidden."""
        if needed not in self.rights:
            had = ", ".join(sorted(self.rights)) or "none"
            raise Forbidden(f"This takes a user's token with the right {needed}; it has: {had}.")


@dataclass(frozen=True, slots=True)
class Grant:
    """Project and access level that an API key gives.

    `ends_in_s`: seconds until the key expires; infinite for a key that never expires. `member`:
    email of the member whose key it is. `user`: set for a user's token, whose rights are these
    alone; the rest is that of the key that made it.
    """

    key_id: UUID
    project: Project
    access: Access
    ends_in_s: float = math.inf
    member: str | None = None
    user: UserRights | None = None

    def require(self, needed: Access) -> None:
        """Check that this is a key with at least the access `needed`. Errors: Forbidden."""
        if self.user is not None:
            raise Forbidden(NOT_FOR_USERS)
        if not self.access.allows(needed):
            raise Forbidden(f"This takes a key of scope {needed}; this one's is {self.access}.")

    @property
    def administers_organization(self) -> bool:
        """True for an admin key that belongs to no member: a member has rights per project."""
        keyed = self.user is None and self.member is None
        return keyed and self.access.allows(Access.ADMIN)

    def require_organization(self) -> None:
        """Check that the key administers its whole organization. Errors: Forbidden."""
        if not self.administers_organization:
            raise Forbidden(
                "This takes an admin key of the organization; a member's key administers only the"
                " projects whose OWNER the member is."
            )


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key as listed: all its columns except the key itself."""

    id: UUID
    project_id: ProjectId
    name: str
    prefix: str
    member: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    created_by: UUID | None
    access: Access


class ApiKeys(LedgerStore):
    """Create, list, check and revoke API keys."""

    async def grants(self, digests: Collection[bytes]) -> Mapping[bytes, Grant]:
        """Return the grants of the keys and users' tokens with these digests, without unknown,
        revoked and expired ones. One query for all keys, and one for what is no key.
        """
        async with self._engine.connect() as connection:
            rows = (await connection.execute(_keys_with(digests))).all()
            grants = {row.digest: _as_grant(row) for row in rows}
            if rest := [digest for digest in digests if digest not in grants]:
                tokens = (await connection.execute(_tokens_with(rest))).all()
                grants |= {row.digest: _as_user_grant(row) for row in tokens}
        return grants

    async def is_owner(self, organization_id: OrganizationId, project_id: UUID, email: str) -> bool:
        """Tell if this person is an OWNER of this project of the organization."""
        query = select(_owned(email, organization_id).where(projects.c.id == project_id).exists())
        return bool(await fetch_value(self._engine, query))

    async def last_admin(self) -> Grant:
        """Return the grant of the operator's oldest lasting admin key, without the key.

        For an operator who lost the key but can reach the database. Such a key always exists,
        because the last one cannot be revoked.

        Errors: NotFound if the database has no operator yet.
        """
        query = (
            select(api_keys.c.id.label("key_id"), projects)
            .join(projects, projects.c.id == api_keys.c.project_id)
            .join(organizations, organizations.c.id == projects.c.organization_id)
            .where(organizations.c.operator, _lasting_admin())
            .order_by(api_keys.c.created_at)
            .limit(1)
        )
        row = await fetch_known(self._engine, query, missing=NO_OPERATOR)
        own = OrganizationId(row.organization_id)
        return Grant(row.key_id, Project(ProjectId(row.id), own, row.name), Access.ADMIN)

    async def make(
        self,
        project_id: ProjectId,
        *,
        name: str,
        access: Access,
        by: Grant,
        member: str | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[ApiKey, Secret]:
        """Create a key and return it with its secret, which is shown only this once.

        If the key `by` expires, the new key expires no later. If it belongs to a member, the new
        key belongs to the same member and ends together with it.

        Errors: NotFound if `member` is not a member of the project; InvalidInput if `expires_at` is
        in the past or later than the end of `by`; Forbidden if `by` belongs to another member, or
        has ended.
        """
        secret = Secret()
        values = {"project_id": project_id, "name": name, "scope": access, "created_by": by.key_id}
        async with self._engine.begin() as connection:
            await lock_organization(connection, by.project.organization_id)
            maker = await _maker(connection, by)
            member = _member(maker, member)
            expires_at = _end(maker, expires_at)
            stored = {"digest": secret.digest, "prefix": secret.prefix, "expires_at": expires_at}
            if member is not None:
                await _lock_member(connection, project_id, member)
            await connection.execute(insert(api_keys).values(values | stored | {"member": member}))
            query = _listed().where(api_keys.c.digest == secret.digest)
            row = (await connection.execute(query)).one()
            if expires_at and expires_at <= row.created_at:
                raise InvalidInput("expires_at: this time is over; give one to come.")
        return _as_key(row), secret

    async def of_project(self, project_id: ProjectId) -> Sequence[ApiKey]:
        """Return all keys of the project, newest first, including revoked and expired ones."""
        query = _listed().where(api_keys.c.project_id == project_id)
        rows = await fetch(self._engine, query.order_by(api_keys.c.created_at.desc()))
        return [_as_key(row) for row in rows]

    async def revoke(self, by: Grant, key_id: UUID, *, descendants: bool = False) -> None:
        """Revoke a key of the organization of `by`; revoking it again changes nothing.

        If the key belongs to a member or expires, all keys created with it, directly or indirectly,
        are revoked too. For other keys this happens only with `descendants`.

        A member's key revokes keys of the projects whose OWNER the member is, except admin keys
        that belong to no member: these administer the organization.

        Errors: NotFound; Conflict if it is the last admin key.
        """
        organization_id = by.project.organization_id
        this = api_keys.c.id == key_id
        may_end = and_(this, _administered(by.member, organization_id)) if by.member else this
        async with self._engine.begin() as connection:
            await lock_organization(connection, organization_id)
            if not await connection.scalar(select(_mine(organization_id, may_end))):
                raise NotFound(NO_SUCH_KEY)
            bound = or_(api_keys.c.member.is_not(None), api_keys.c.expires_at.is_not(None))
            with_all = descendants or await connection.scalar(select(bound).where(this))
            ends = or_(this, api_keys.c.id.in_(made_by(this))) if with_all else this
            await keep_one_admin(connection, organization_id, without=ends)
            await revoke_keys(connection, ends)


def made_by(first: ColumnElement[bool]) -> Select[tuple[UUID]]:
    """Select the ids of the keys created with these keys, directly or indirectly."""
    keys = select(api_keys.c.id).where(first).cte("keys", recursive=True)
    child = api_keys.alias("child")
    keys = keys.union(select(child.c.id).join(keys, child.c.created_by == keys.c.id))
    parents = select(api_keys.c.id).where(first)
    return select(keys.c.id).where(keys.c.id.not_in(parents))


async def revoke_keys(connection: AsyncConnection, which: ColumnElement[bool]) -> None:
    """Revoke the keys that match `which`; keys already revoked keep their time."""
    query = update(api_keys).where(which, api_keys.c.revoked_at.is_(None))
    await connection.execute(query.values(revoked_at=func.now()))


async def lock_organization(connection: AsyncConnection, organization_id: OrganizationId) -> None:
    """Lock the organization's row, so that changes to its keys run one after another."""
    query = select(organizations.c.id).where(organizations.c.id == organization_id)
    await connection.execute(query.with_for_update())


async def keep_one_admin(
    connection: AsyncConnection, organization_id: OrganizationId, *, without: ColumnElement[bool]
) -> None:
    """Refuse to remove the keys `without` if no lasting admin key would remain.

    A lasting admin key belongs to no member and never expires. Removing only other keys is always
    allowed. Errors: Conflict.
    """
    lasting = _lasting_admin()
    taken = await connection.scalar(select(_mine(organization_id, lasting, without)))
    if taken and not await connection.scalar(select(_mine(organization_id, lasting, ~without))):
        raise Conflict(LAST_KEY)


def _lasting_admin() -> ColumnElement[bool]:
    """Match admin keys that are not revoked, belong to no member and never expire."""
    return and_(
        api_keys.c.scope == Access.ADMIN,
        api_keys.c.revoked_at.is_(None),
        api_keys.c.expires_at.is_(None),
        api_keys.c.member.is_(None),
    )


def _mine(organization_id: OrganizationId, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Test that the organization has a key that matches the conditions."""
    return exists(
        select(api_keys.c.id)
        .join(projects, projects.c.id == api_keys.c.project_id)
        .where(projects.c.organization_id == organization_id, *conditions)
    )


def _selected(*columns: ColumnElement[Any]) -> Select[Any]:
    """Select keys with their effective access.

    The key of a member with the role READER can only read, even if it was created with more access.
    """
    access = case((members.c.role == "READER", Access.READ.value), else_=api_keys.c.scope)
    owner = and_(
        members.c.project_id == api_keys.c.project_id, members.c.email == api_keys.c.member
    )
    return select(*columns, access.label("access")).select_from(api_keys).outerjoin(members, owner)


GRANTED = (
    api_keys.c.id.label("key_id"),
    api_keys.c.member,
    *(projects.c[name] for name in ("id", "organization_id", "name", "settings")),
)


def _keys_with(digests: Collection[bytes]) -> Select[Any]:
    """Select valid keys with one of the digests."""
    ends_in_s = func.extract("epoch", api_keys.c.expires_at - func.now()).label("ends_in_s")
    return (
        _selected(*GRANTED, api_keys.c.digest, ends_in_s)
        .join(projects, projects.c.id == api_keys.c.project_id)
        .where(api_keys.c.digest == any_(literal(list(digests), ARRAY(LargeBinary))), _valid())
    )


def _tokens_with(digests: Collection[bytes]) -> Select[Any]:
    """Select users' tokens with one of the digests, whose keys are valid."""
    end = func.least(user_tokens.c.expires_at, api_keys.c.expires_at)
    token = (user_tokens.c.digest, user_tokens.c.user_id, user_tokens.c.rights)
    return (
        _selected(
            *GRANTED,
            *token,
            user_tokens.c.id.label("token_id"),
            func.extract("epoch", end - func.now()).label("ends_in_s"),
        )
        .join(user_tokens, user_tokens.c.key_id == api_keys.c.id)
        .join(projects, projects.c.id == api_keys.c.project_id)
        .where(
            user_tokens.c.digest == any_(literal(list(digests), ARRAY(LargeBinary))),
            user_tokens.c.project_id == api_keys.c.project_id,
            user_tokens.c.expires_at > func.now(),
            _valid(),
        )
    )


def _listed() -> Select[Any]:
    names = "id project_id name prefix member created_at expires_at revoked_at created_by"
    return _selected(*(api_keys.c[name] for name in names.split()))


def _owned(email: str, organization_id: OrganizationId) -> Select[tuple[UUID]]:
    """Select the ids of the organization's projects whose OWNER this person is."""
    return (
        select(projects.c.id)
        .join(members, members.c.project_id == projects.c.id)
        .where(
            projects.c.organization_id == organization_id,
            members.c.email == email,
            members.c.role == "OWNER",
        )
    )


def _administered(email: str, organization_id: OrganizationId) -> ColumnElement[bool]:
    """Match the keys that this member administers."""
    of_organization = and_(api_keys.c.scope == Access.ADMIN, api_keys.c.member.is_(None))
    return and_(api_keys.c.project_id.in_(_owned(email, organization_id)), ~of_organization)


def _valid() -> ColumnElement[bool]:
    """Match keys that are neither revoked nor expired."""
    return and_(
        api_keys.c.revoked_at.is_(None),
        or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > func.now()),
    )


async def _maker(connection: AsyncConnection, by: Grant) -> Any:
    """Return the member and the expiry of the creating key. Errors: Forbidden if it has ended."""
    query = select(api_keys.c.member, api_keys.c.expires_at).where(
        api_keys.c.id == by.key_id, _valid()
    )
    rows: Sequence[Any] = (await connection.execute(query)).all()
    if not rows:
        raise Forbidden("This key has ended.")
    return rows[0]


def _member(maker: Any, wanted: str | None) -> str | None:
    """Return the member of the new key. Errors: Forbidden if `maker` belongs to another one."""
    if maker.member is not None and wanted not in (None, maker.member):
        raise Forbidden(
            f"This key belongs to {maker.member} and makes keys only for that member: leave out"
            " member, or use a key that belongs to no member."
        )
    member: str | None = maker.member or wanted
    return member


def _end(maker: Any, wanted: datetime | None) -> datetime | None:
    """Return the expiry of the new key. Errors: InvalidInput if it is later than the creator's."""
    end: datetime | None = maker.expires_at
    if wanted is not None and end is not None and wanted > end:
        raise InvalidInput(f"expires_at: the key that makes this one ends at {end.isoformat()}.")
    return wanted or end


async def _lock_member(connection: AsyncConnection, project_id: ProjectId, email: str) -> None:
    """Lock the member's row against a concurrent removal. Errors: NotFound."""
    query = select(members.c.email).where(
        members.c.project_id == project_id, members.c.email == email
    )
    if await connection.scalar(query.with_for_update()) is None:
        raise NotFound("No member of the project has this email; add them first.")


def _as_grant(row: Row[Any]) -> Grant:
    settings = row.settings
    project = Project(
        ProjectId(row.id),
        OrganizationId(row.organization_id),
        row.name,
        Decay.of(settings.get("decay")),
        default_cut=settings.get("default_cut") is not False,
        allowed_origins=tuple(settings.get("allowed_origins") or ()),
    )
    ends_in_s = math.inf if row.ends_in_s is None else float(row.ends_in_s)
    return Grant(row.key_id, project, Access(row.access), ends_in_s, row.member)


def _as_user_grant(row: Row[Any]) -> Grant:
    """The grant of a user's token. With a key that may only read, the token may only read."""
    grant = _as_grant(row)
    writes = grant.access.allows(Access.WRITE)
    rights = frozenset(right for right in map(Right, row.rights) if writes or right is Right.READ)
    return replace(grant, user=UserRights(row.token_id, row.user_id, rights))


def _as_key(row: Row[Any]) -> ApiKey:
    return ApiKey(**{**row._asdict(), "access": Access(row.access)})
